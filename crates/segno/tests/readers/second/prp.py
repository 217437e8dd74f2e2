"""A second reader of .prp-session, written from the documents by somebody who did not know the program.

second/prp.py FOLDER prints "ok", or what does not hold.
"""
import datetime
import hashlib
import os
import re
import uuid

from common import VIOLATIONS
from common import wrong
from common import load
from common import moment
from common import member
from common import one_of
from common import sha256
from common import main

PH = ['RED', 'GREEN', 'REFACTOR', 'DOCUMENT', 'QA']
ST = ['running', 'paused', 'suspended', 'completed', 'halted', 'aborted']


def validate_session(state, prp_file):
    for f in ['session_id', 'prp_file', 'started_at', 'current_phase', 'status']:
        if f not in state:
            return (False, f'Missing required field: {f}')
    if state['prp_file'] != prp_file:
        return (False, 'PRP mismatch')
    if state['current_phase'] not in PH:
        return (False, f"Invalid phase: {state['current_phase']}")
    if state['status'] not in ['running', 'paused', 'suspended']:
        if state['status'] == 'completed':
            return (False, 'Session already completed')
        if state['status'] == 'halted':
            return (False, 'Session halted by Circuit Breaker')
        return (False, f"Invalid status: {state['status']}")
    return (True, '')


def check_expiration(dir, state, prp_file):
    cb = load(os.path.join(dir, 'circuit-breaker.json'))
    if cb and cb.get('state') == 'OPEN':
        return dict(expired=True, reason=f"Circuit Breaker OPEN: {cb.get('open_reason')}", action='reset_or_abort')
    if state.get('status') == 'completed':
        return dict(expired=True, reason='Session completed successfully', action='no_resume')
    if state.get('prp_file') != prp_file:
        return dict(expired=True, reason='PRP mismatch', action='create_new')
    ok, e = validate_session(state, prp_file)
    if not ok:
        return dict(expired=True, reason=f'State corrupted: {e}', action='reset')
    return dict(expired=False)


def check(d):
    L = load(d + '/loop-state.json')
    if L is None:
        if not VIOLATIONS:
            wrong('no loop-state.json')
        return
    n = 'loop-state'
    s = member(L, 'session_id', str, n)
    try:
        if s is not None:
            u = uuid.UUID(s)
            if u.version not in (4, 7):
                wrong(f'session_id uuid version {u.version}')
    except ValueError:
        wrong(f'session_id not a UUID: {s}')
    pf = member(L, 'prp_file', str, n)
    a = moment(L.get('started_at'), n + '.started_at')
    b = moment(L.get('last_activity'), n + '.last_activity')
    if a and b and (b < a):
        wrong('last_activity < started_at')
    cp = L.get('current_phase')
    one_of(cp, PH, n + '.current_phase')
    it = member(L, 'current_iteration', int, n)
    if it is not None and (not 0 <= it <= 100):
        wrong(f'current_iteration {it}')
    st = L.get('status')
    one_of(st, ST, n + '.status')
    member(L, 'halt_reason', str, n, null=True)
    if st == 'halted' and (not L.get('halt_reason')):
        wrong('halted without halt_reason')
    if st != 'halted' and L.get('halt_reason'):
        wrong(f"halt_reason {L['halt_reason']!r} while {st}")
    pc = member(L, 'phases_completed', list, n)
    if pc is not None:
        for p in pc:
            one_of(p, PH, n + '.phases_completed')
        if len(set(pc)) != len(pc):
            wrong('phases_completed duplicates')
        if sorted(pc, key=PH.index if all((p in PH for p in pc)) else None) != pc:
            wrong(f'phases_completed order {pc}')
        if st not in ('completed',) and cp in pc:
            wrong(f'current_phase {cp} in phases_completed while {st}')
        if cp in PH and st != 'completed':
            for p in pc:
                if p in PH and PH.index(p) > PH.index(cp):
                    wrong(f'later phase {p} completed while in {cp}')
    eh = member(L, 'error_history', list, n) or []
    if len(eh) > 50:
        wrong('error_history>50')
    prev = None
    for i, e in enumerate(eh):
        m = f'error_history[{i}]'
        t = moment(e.get('timestamp'), m + '.timestamp')
        if prev and t and (t < prev):
            wrong(m + ' out of order')
        prev = t
        one_of(e.get('phase'), PH, m + '.phase')
        k = member(e, 'iteration', int, m)
        if k is not None and (not 0 <= k <= 100):
            wrong(f'{m}.iteration {k}')
        x = member(e, 'error', str, m)
        if x is not None and len(x) > 500:
            wrong(m + ' error>500')
        sha256(e.get('hash'), m + '.hash')
        if x is not None and len(x) < 490 and (e.get('hash', '')[-64:] != hashlib.sha256(x.encode()).hexdigest()):
            wrong(m + ': hash is not SHA-256 of the text')
    ph = member(L, 'phase_history', dict, n, req=False) or {}
    for p, h in ph.items():
        one_of(p, PH, 'phase_history key')
        for k in ('started_at', 'completed_at', 'iterations', 'exit_reason'):
            if k not in h:
                wrong(f'phase_history.{p}: no {k}')
        x = moment(h.get('started_at'), f'phase_history.{p}.started_at', null=True)
        y = moment(h.get('completed_at'), f'phase_history.{p}.completed_at', null=True)
        if x and y and (y < x):
            wrong('phase_history completed<started')
        if p in (pc or []) and h.get('completed_at') is None:
            wrong(f'phase_history.{p} not completed but in phases_completed')
    for k in ('total_agent_calls', 'qa_attempts'):
        member(L, k, int, n, req=False, null=True)
    for k in ('paused_at', 'resumed_at', 'completed_at'):
        moment(L.get(k), n + '.' + k, null=True)
    if st == 'completed' and (not L.get('completed_at')):
        wrong('completed without completed_at')
    if st != 'completed' and L.get('completed_at'):
        wrong(f'completed_at while {st}')
    if st == 'paused' and (not L.get('paused_at')):
        wrong('paused without paused_at')
    if (L.get('qa_attempts') or 0) > 3:
        wrong('qa_attempts>3')
    ok, e = validate_session(L, pf)
    want = {'running': '', 'paused': '', 'suspended': '', 'completed': 'Session already completed', 'halted': 'Session halted by Circuit Breaker', 'aborted': 'Invalid status: aborted'}.get(st)
    if e != want:
        wrong(f'validate_session says {e!r} for {st}')
    C = load(d + '/circuit-breaker.json')
    if C is None:
        wrong('no circuit-breaker.json')
    else:
        n = 'circuit-breaker'
        one_of(C.get('state'), ['CLOSED', 'HALF_OPEN', 'OPEN'], n + '.state')
        for k in ('no_progress_count', 'same_error_count'):
            x = member(C, k, int, n)
            if x is not None and x < 0:
                wrong(k + '<0')
        member(C, 'last_progress_metric', dict, n)
        member(C, 'last_error_hash', str, n, null=True)
        if C.get('last_error_hash'):
            sha256(C['last_error_hash'], n + '.last_error_hash')
        moment(C.get('opened_at'), n + '.opened_at', null=True)
        member(C, 'open_reason', str, n, null=True)
        if (C.get('state') == 'OPEN') != (C.get('opened_at') is not None):
            wrong(f"opened_at {C.get('opened_at')} with state {C.get('state')}")
        if (C.get('state') == 'OPEN') != (C.get('open_reason') is not None):
            wrong(f"open_reason {C.get('open_reason')} with state {C.get('state')}")
        prev = None
        stt = None
        for i, h in enumerate(member(C, 'history', list, n) or []):
            m = f'{n}.history[{i}]'
            t = moment(h.get('timestamp'), m)
            one_of(h.get('event'), ['state_change', 'progress', 'error'], m + '.event')
            for k in ('from_state', 'to_state'):
                if k not in h:
                    wrong(f'{m} no {k}')
                elif h[k] is not None:
                    one_of(h[k], ['CLOSED', 'HALF_OPEN', 'OPEN'], m + '.' + k)
            if 'reason' not in h:
                wrong(m + ' no reason')
            if prev and t and (t < prev):
                wrong(m + ' order')
            prev = t
            if h.get('event') == 'state_change':
                if stt and h.get('from_state') != stt:
                    wrong(m + f" from {h.get('from_state')} but was {stt}")
                stt = h.get('to_state')
        if stt and stt != C.get('state'):
            wrong(f"{n}: last history state {stt} != {C.get('state')}")
        if C.get('state') == 'OPEN' and st in ('running',):
            wrong('breaker OPEN while status running')
    M = load(d + '/metrics.json')
    if M is None:
        wrong('no metrics.json')
    else:
        n = 'metrics'
        if M.get('session_id') != s:
            wrong('metrics.session_id differs')
        if M.get('prp_file') != pf:
            wrong(f"metrics.prp_file {M.get('prp_file')!r}")
        if M.get('started_at') != L.get('started_at'):
            wrong('metrics.started_at differs')
        if M.get('current_phase') != cp:
            wrong(f"metrics.current_phase {M.get('current_phase')} != {cp}")
        P = member(M, 'phases', dict, n) or {}
        for p, h in P.items():
            one_of(p, PH, 'metrics.phases key')
            if h is None:
                continue
            m = 'metrics.phases.' + p
            x = moment(h.get('started_at'), m + '.started_at')
            y = moment(h.get('completed_at'), m + '.completed_at', null=True)
            member(h, 'iterations', int, m)
            if ('current_metrics' in h) == ('final_metrics' in h):
                wrong(m + ' needs exactly one of current_metrics|final_metrics')
            if 'final_metrics' in h and h.get('completed_at') is None:
                wrong(m + ' final_metrics but not completed')
            if 'current_metrics' in h and h.get('completed_at') is not None:
                wrong(m + ' current_metrics but completed')
            cm = h.get('current_metrics', h.get('final_metrics')) or {}
            if p == 'GREEN' and {'tests_total', 'tests_passing', 'tests_failing'} <= set(cm) and (cm['tests_passing'] + cm['tests_failing'] > cm['tests_total']):
                wrong(m + f' passing+failing>total {cm}')
            for i, e in enumerate(member(h, 'history', list, m) or []):
                member(e, 'iteration', int, m)
                moment(e.get('timestamp'), m + '.history.timestamp')
                for k, v in e.items():
                    if k not in ('iteration', 'timestamp') and (not isinstance(v, (int, float, bool, list, type(None)))):
                        wrong(f'{m}.history[{i}].{k}: not a number {v!r}')
    R = load(d + '/rate-limit.json')
    if R is None:
        wrong('no rate-limit.json')
    else:
        H = member(R, 'hourly', dict, 'rate-limit') or {}
        member(H, 'calls_made', int, 'hourly')
        lim = member(H, 'limit', int, 'hourly')
        w = moment(H.get('window_start'), 'hourly.window_start')
        x = moment(H.get('next_reset'), 'hourly.next_reset', future=False)
        if w and x and (x < w):
            wrong('next_reset<window_start')
        if w and x and (x - w != datetime.timedelta(minutes=60)):
            wrong(f'window is {x - w}, not 60 min')
        A = member(R, 'anthropic_5h', dict, 'rate-limit') or {}
        member(A, 'detected', bool, '5h')
        member(A, 'waiting', bool, '5h')
        moment(A.get('detected_at'), '5h.detected_at', null=True)
        moment(A.get('resume_at'), '5h.resume_at', null=True, future=False)
        for k in ('detected_at', 'resume_at'):
            if k not in A:
                wrong('5h no ' + k)
        p = member(R, 'paused', bool, 'rate-limit')
        for k in ('pause_reason', 'paused_at'):
            if k not in R:
                wrong('rate-limit no ' + k)
            elif p and R[k] is None:
                wrong(f'rate-limit paused without {k}')
    G = load(d + '/dual-gate.json')
    if G is not None:
        n = 'dual-gate'
        one_of(G.get('phase'), PH, n + '.phase')
        member(G, 'iteration', int, n)
        g1 = member(G, 'gate_1', dict, n) or {}
        g2 = member(G, 'gate_2', dict, n) or {}
        a1 = member(g1, 'satisfied', bool, 'gate_1')
        member(g1, 'condition', str, 'gate_1')
        member(g1, 'values', dict, 'gate_1')
        a2 = member(g2, 'satisfied', bool, 'gate_2')
        one_of(g2.get('source'), ['explicit_signal', 'none'], 'gate_2.source')
        if member(G, 'can_exit', bool, n) != (a1 and a2):
            wrong('can_exit != gate_1 && gate_2')
        if a2 and g2.get('source') != 'explicit_signal':
            wrong('gate_2 satisfied without explicit_signal')
        if 'timestamp' not in G and 'evaluated_at' not in G:
            wrong('dual-gate no timestamp')
        moment(G.get('timestamp', G.get('evaluated_at')), 'dual-gate.timestamp')
        if G.get('phase') in PH and cp in PH and (PH.index(G['phase']) > PH.index(cp)) and (cp != 'GREEN'):
            wrong('dual-gate ahead of phase')
    else:
        wrong('no dual-gate.json')
    Q = load(d + '/qa-state.json')
    if Q is not None:
        member(Q, 'attempt', int, 'qa')
        for k in ('last_verdict', 'report_path', 'memory_context'):
            if k not in Q:
                wrong('qa-state no ' + k)
        one_of(Q.get('last_verdict'), [None, 'APPROVE', 'REJECT', 'ESCALATE'], 'qa.last_verdict')
    p = d + '/phase-status.log'
    if os.path.exists(p):
        log(open(p, encoding='utf-8').read())
    else:
        wrong('no phase-status.log')
ORDER = ['TIMESTAMP', 'PHASE', 'STATUS', 'ITERATION', 'PROGRESS_PERCENT', 'TESTS', 'FILES', 'CIRCUIT_BREAKER', 'DUAL_GATE', 'BLOCKERS', 'EXIT_SIGNAL', 'RECOMMENDATION']


def log(t):
    if not t:
        return
    blocks = re.split('\\n\\n+(?=---PRP_PHASE_STATUS---)', t.strip('\n'))
    prev = None
    for i, b in enumerate(blocks):
        n = f'log[{i}]'
        ls = b.split('\n')
        if ls[0] != '---PRP_PHASE_STATUS---' or ls[-1] != '---END_PRP_PHASE_STATUS---':
            wrong(n + ' delimiters: ' + repr(b[:80]) + '…' + repr(b[-60:]))
            continue
        top = []
        d = {}
        cur = None
        for l in ls[1:-1]:
            m = re.match('^([A-Z0-9_]+):\\s*(.*)$', l)
            if m:
                cur = m[1]
                top.append(cur)
                d[cur] = m[2] if m[2] else {}
            else:
                m = re.match('^\\s+([A-Z0-9_]+):\\s*(.*)$', l)
                if m and isinstance(d.get(cur), dict):
                    d[cur][m[1]] = m[2]
                elif re.match('^\\s*- ', l):
                    if not isinstance(d[cur], list):
                        d[cur] = []
                    d[cur].append(l.strip()[2:])
                else:
                    wrong(f'{n} line {l!r}')
        core = [k for k in top if k in ORDER]
        miss = [k for k in ORDER if k not in top]
        if d.get('PHASE') == 'QA':
            miss = [k for k in miss if k != 'TESTS']
        if miss:
            wrong(f'{n} missing {miss}')
        if core != [k for k in ORDER if k in top]:
            wrong(f'{n} order {top}')
        x = moment(d.get('TIMESTAMP'), n + '.TIMESTAMP')
        if prev and x and (x < prev):
            wrong(n + ' out of order')
        prev = x
        one_of(d.get('PHASE'), PH, n + '.PHASE')
        one_of(d.get('STATUS'), ['IN_PROGRESS', 'BLOCKED', 'COMPLETE'], n + '.STATUS')
        try:
            if int(d.get('ITERATION')) < 1:
                wrong(f"{n} ITERATION {d.get('ITERATION')} not 1-based")
            if not 0 <= float(d.get('PROGRESS_PERCENT')) <= 100:
                wrong(n + ' percent')
        except (TypeError, ValueError):
            wrong(f"{n} ITERATION/PERCENT {d.get('ITERATION')} {d.get('PROGRESS_PERCENT')}")
        T = d.get('TESTS')
        if T is not None:
            try:
                if list(T) != ['TOTAL', 'PASSING', 'FAILING', 'SKIPPED']:
                    wrong(f'{n} TESTS {T}')
                if int(T['PASSING']) + int(T['FAILING']) + int(T['SKIPPED']) != int(T['TOTAL']):
                    wrong(f'{n} TESTS invariant {T}')
            except Exception as e:
                wrong(f'{n} TESTS {T}')
        F = d.get('FILES')
        if not isinstance(F, dict) or list(F) != ['CREATED', 'MODIFIED', 'DELETED']:
            wrong(f'{n} FILES {F}')
        c = d.get('CIRCUIT_BREAKER')
        if not isinstance(c, dict) or list(c) != ['STATE', 'NO_PROGRESS_COUNT']:
            wrong(f'{n} CB {c}')
        else:
            one_of(c['STATE'], ['CLOSED', 'HALF_OPEN', 'OPEN'], n)
        g = d.get('DUAL_GATE')
        if not isinstance(g, dict) or not {'GATE_1', 'GATE_2', 'CAN_EXIT'} <= set(g):
            wrong(f'{n} DG {g}')
        elif any((g[k] not in ('true', 'false') for k in ('GATE_1', 'GATE_2', 'CAN_EXIT'))):
            wrong(f'{n} DG bool {g}')
        elif (g['CAN_EXIT'] == 'true') != (g['GATE_1'] == 'true' and g['GATE_2'] == 'true'):
            wrong(f'{n} DG can_exit {g}')
        bl = d.get('BLOCKERS')
        if not isinstance(bl, list) or not bl:
            wrong(f'{n} BLOCKERS {bl}')
        one_of(d.get('EXIT_SIGNAL'), ['true', 'false'], n + '.EXIT_SIGNAL')
        if not isinstance(d.get('RECOMMENDATION'), str):
            wrong(n + ' RECOMMENDATION')
        if d.get('STATUS') == 'COMPLETE' and isinstance(g, dict) and (g.get('CAN_EXIT') != 'true'):
            wrong(f'{n} COMPLETE without CAN_EXIT {g}')


if __name__ == '__main__':
    main(check)
