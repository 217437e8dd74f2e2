"""A second reader of a go-team registry, written from the document by somebody who did not know the program.
"""
import hashlib
import json
import os
import re

from common import VIOLATIONS
from common import wrong
from common import load
from common import moment
from common import member
from common import one_of
from common import sha256
from common import main

STAT = ['active', 'completed', 'interrupted', 'failed', 'paused', 'abandoned']
STEPS = {1: 'init', 2: 'requirements', 3: 'architecture', 4: 'implementation', 5: 'testing', 6: 'review', 7: 'optimization', 8: 'release', 9: 'synthesis'}


def resume_checks(reg, id):
    s = [x for x in reg['sessions'] if x['id'] == id]
    if not s:
        return f'Session not found: {id}'
    if s[0]['status'] == 'completed':
        return 'Session already completed'
    if s[0]['status'] == 'failed':
        return 'Session failed and cannot be resumed'
    return ''


def st_state(S, n, cp=False):
    member(S, 'topic', str, n)
    member(S, 'phase', str, n)
    c = member(S, 'current_step', int, n)
    member(S, 'current_agent', str, n, null=True)
    if c is not None and (not 1 <= c <= 9):
        wrong(f'{n}.current_step {c}')
    i = member(S, 'iteration_count', int, n)
    if i is not None and i < 0:
        wrong('iteration_count<0')
    member(S, 'breakpoint_active', bool, n)
    if cp:
        member(S, 'date', str, n)
        member(S, 'max_iterations', int, n)
    M = member(S, 'metrics', dict, n) or {}
    for k in ('build_pass', 'lint_clean', 'race_free'):
        member(M, k, bool, n + '.metrics', req=False)
    v = member(M, 'test_coverage', (int, float), n + '.metrics', req=False)
    if v is not None and (not 0 <= v <= 100):
        wrong('test_coverage ' + str(v))
    return c


def check(d):
    R = load(d + '/sessions.json')
    if R is None:
        if not VIOLATIONS:
            wrong('no sessions.json')
        return
    if R.get('version') != '1.0.0':
        wrong(f"version {R.get('version')}")
    ids = []
    for i, s in enumerate(member(R, 'sessions', list, 'registry') or []):
        n = f'sessions[{i}]'
        id = member(s, 'id', str, n)
        ids.append(id)
        if id and (not re.fullmatch('session-[A-Za-z0-9_-]+', id)):
            wrong(n + ' id ' + id)
        member(s, 'topic', str, n)
        one_of(s.get('status'), STAT, n + '.status')
        c = moment(s.get('created_at'), n + '.created_at')
        u = moment(s.get('updated_at'), n + '.updated_at')
        if c and u and (u < c):
            wrong(n + ' updated<created')
        k = member(s, 'current_step', int, n)
        if k is not None and (not 1 <= k <= 9):
            wrong(f'{n}.current_step {k}')
        P = member(s, 'progress', dict, n) or {}
        a = member(P, 'steps_completed', int, n)
        t = member(P, 'total_steps', int, n)
        pc = member(P, 'percentage', int, n)
        if None not in (a, t, pc) and pc != a * 100 // t:
            wrong(f'{n} percentage {pc} of {a}/{t}')
        if None not in (a, k) and (not k - 1 <= a <= k):
            wrong(f'{n} steps_completed {a} at step {k}')
        if s.get('status') == 'completed' and a != t:
            wrong(f'{n} completed with {a}/{t} steps')
        member(s, 'git_branch', str, n, null=True)
        r = member(s, 'resumable', bool, n)
        if r != (s.get('status') in ('active', 'paused', 'interrupted')):
            wrong(f"{n} resumable {r} for {s.get('status')}")
        if s.get('status') == 'completed':
            moment(s.get('completed_at'), n + '.completed_at')
        one(f'{d}/{id}', s)
    if len(set(ids)) != len(ids):
        wrong('ids twice')
    l = R.get('last_active_session', '?')
    if l not in ids and (not l is None):
        wrong(f'last_active_session {l}')
    for x in os.listdir(d):
        if os.path.isdir(f'{d}/{x}') and x.startswith('session-') and (x not in ids):
            wrong('folder without entry ' + x)


def csum(c):
    b = {k: v for k, v in c.items() if k not in ('checksum', 'valid', 'invalidated_by', 'corrupted_at', 'segno')}
    return 'sha256:' + hashlib.sha256(json.dumps(b, sort_keys=True, separators=(',', ':'), ensure_ascii=False).encode()).hexdigest()


def one(d, s):
    id = s['id']
    n = id
    M = load(d + '/manifest.json')
    mids = []
    if M is None:
        wrong(n + ': no manifest.json')
    else:
        m = n + '.manifest'
        if M.get('session_id') != id:
            wrong(m + ' session_id')
        if M.get('topic') != s.get('topic'):
            wrong(f"{m} topic {M.get('topic')}")
        moment(M.get('created_at'), m)
        moment(M.get('updated_at'), m)
        if M.get('created_at') != s.get('created_at'):
            wrong(m + ' created_at differs')
        k = member(M, 'current_step', int, m)
        if k != s.get('current_step'):
            wrong(f"{m} current_step {k} != registry {s.get('current_step')}")
        prev = None
        for i, c in enumerate(member(M, 'checkpoints', list, m) or []):
            q = f'{m}.checkpoints[{i}]'
            ci = member(c, 'id', str, q)
            mids.append(ci)
            g = re.fullmatch('cp-(\\d\\d)-([a-z0-9-]+?)(-\\d{8}-\\d{6})?', ci or '')
            if not g:
                wrong(f'{q} id {ci}')
            # The number in an id is the checkpoint's own: a step may have several.
            k = member(c, 'step', int, q)
            member(c, 'step_name', str, q)
            v = member(c, 'valid', bool, q)
            t = moment(c.get('timestamp'), q)
            if k is not None and (not 1 <= k <= 9):
                wrong(f'{q} step {k}')
            if prev and t and (t < prev):
                wrong(q + ' order')
            prev = t
            if v is False and (not (c.get('invalidated_by') or c.get('corrupted_at'))):
                wrong(q + ' invalid without reason')
            f = load(f'{d}/{ci}.json')
            if f is None:
                wrong(f'{q} file {ci}.json missing')
                continue
            if f.get('id') != ci:
                wrong(q + ' file id ' + str(f.get('id')))
            if f.get('session_id') != id:
                wrong(q + ' file session_id ' + str(f.get('session_id')))
            if f.get('step_number') != c.get('step'):
                wrong(f"{q} step_number {f.get('step_number')} vs {c.get('step')}")
            if f.get('step_name') != c.get('step_name'):
                wrong(f"{q} step_name {f.get('step_name')}")
            moment(f.get('created_at'), q + '.created_at')
            kk = st_state(member(f, 'state', dict, q) or {}, q + '.state', True)
            if kk != c.get('step'):
                wrong(f"{q} state.current_step {kk} vs step {c.get('step')}")
            O = member(f, 'outputs', dict, q) or {}
            for k in ('spec', 'architecture', 'release_config'):
                if k not in O:
                    wrong(f'{q}.outputs no {k}')
            for k in ('code_files', 'test_files', 'review_comments', 'optimizations'):
                member(O, k, list, q + '.outputs')
            F = member(f, 'files', dict, q) or {}
            for k in ('created', 'modified'):
                member(F, k, list, q + '.files')
            G = member(f, 'git', dict, q) or {}
            e = member(G, 'enabled', bool, q + '.git')
            if e:
                member(G, 'branch', str, q + '.git')
                h = member(G, 'commit_hash', str, q + '.git')
            ck = f.get('checksum')
            if not re.fullmatch('sha256:[0-9a-f]{64}', ck or ''):
                wrong(q + ' checksum form ' + str(ck))
            elif ck != csum(f):
                wrong(q + ' checksum mismatch')
        cc = M.get('current_checkpoint')
        if cc is not None and cc not in mids:
            wrong(f'{m} current_checkpoint {cc} not listed')
        if cc != s.get('current_checkpoint'):
            wrong(f"{m} current_checkpoint {cc} vs registry {s.get('current_checkpoint')}")
        member(M, 'rollback_history', list, m)
    for x in os.listdir(d) if os.path.isdir(d) else []:
        if x.startswith('cp-') and x.endswith('.json') and (x[:-5] not in mids):
            wrong(f'{n}: {x} not in manifest')
    S = load(d + '/state.json')
    if S is None:
        wrong(n + ': no state.json')
    else:
        m = n + '.state'
        if S.get('session_id') != id:
            wrong(m + ' session_id')
        moment(S.get('saved_at'), m + '.saved_at')
        one_of(S.get('save_trigger'), ['auto', 'action', 'checkpoint', 'breakpoint', 'agent_switch'], m + '.save_trigger')
        k = st_state(member(S, 'state', dict, m) or {}, m + '.state')
        if k != s.get('current_step'):
            wrong(f"{m} current_step {k} vs {s.get('current_step')}")
        if (S.get('state') or {}).get('topic') != s.get('topic'):
            wrong(m + ' topic')
        C = member(S, 'context', dict, m) or {}
        member(C, 'last_action', str, m, null=True)
        for x in member(C, 'pending_tasks', list, m) or []:
            if not isinstance(x, str):
                wrong(m + ' pending task ' + repr(x))
        member(C, 'current_file', str, m, null=True)
        member(C, 'current_line', int, m, null=True)
        O = member(S, 'outputs', dict, m) or {}
        for k in ('spec', 'architecture'):
            member(O, k, str, m, null=True)
        member(O, 'code_files', list, m)
        member(O, 'partial_output', str, m, null=True)
        r = member(S, 'recovery_point', dict, m) or {}
        c = member(r, 'checkpoint', str, m + '.recovery_point', null=True)
        if c is not None and c not in mids:
            wrong(f'{m} recovery_point {c} not in manifest')
        a = member(r, 'actions_since_checkpoint', int, m)
        if a is not None and a < 0:
            wrong('actions<0')
        member(r, 'can_resume_from_action', bool, m)
    Y = load(d + '/recovery.json')
    if Y is None:
        if s.get('status') == 'interrupted':
            wrong(n + ': interrupted, no recovery.json')
    else:
        m = n + '.recovery'
        if Y.get('session_id') != id:
            wrong(m + ' session_id')
        moment(Y.get('interrupted_at'), m + '.interrupted_at')
        one_of(Y.get('interrupt_reason'), ['timeout', 'crash', 'disconnect', 'error'], m + '.interrupt_reason')
        l = member(Y, 'last_known_state', dict, m) or {}
        member(l, 'step', int, m)
        member(l, 'agent', str, m, null=True)
        member(l, 'action', str, m, null=True)
        ty = []
        for o in member(Y, 'recovery_options', list, m) or []:
            ty.append(o.get('type'))
            one_of(o.get('type'), ['checkpoint', 'live_state', 'fresh_start'], m + '.type')
            if o.get('type') == 'checkpoint' and o.get('target') not in mids:
                wrong(m + ' target ' + str(o.get('target')))
            if o.get('type') == 'live_state' and o.get('target') != 'state.json':
                wrong(m + ' target ' + str(o.get('target')))
            member(o, 'description', str, m)
            if 'data_loss' not in o:
                wrong(m + ' no data_loss')
        if Y.get('recommended') not in ty:
            wrong(f"{m} recommended {Y.get('recommended')} not in {ty}")
        member(Y, 'auto_resume_enabled', bool, m)
        if s.get('status') in ('completed', 'abandoned', 'failed', 'active'):
            wrong(f"{m}: recovery.json while {s.get('status')}")
    H = load(d + '/rollback-history.json')
    if H is not None:
        m = n + '.rollback-history'
        if H.get('session_id') != id:
            wrong(m + ' session_id')
        for r in member(H, 'history', list, m) or []:
            for k in ('id', 'timestamp', 'from_checkpoint', 'from_step', 'to_checkpoint', 'to_step', 'reason'):
                if k not in r:
                    wrong(f'{m} no {k}')
            moment(r.get('timestamp'), m)
            if r.get('to_checkpoint') not in mids:
                wrong(f"{m} to {r.get('to_checkpoint')}")
            if not isinstance(r.get('from_step'), int) or not isinstance(r.get('to_step'), int):
                wrong(f'{m} steps {r}')
            elif r['to_step'] > r['from_step']:
                wrong(f"{m} forward {r['from_step']}->{r['to_step']}")
            if r.get('reason') != 'observer_requested':
                wrong(f"{m} reason {r.get('reason')!r}")


if __name__ == '__main__':
    main(check)
