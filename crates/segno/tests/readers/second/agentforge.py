"""A second reader of .agentforge/sessions, written from the document by somebody who did not know the program.
"""
import datetime
import os
import re
import yaml

from common import wrong
from common import member
from common import one_of
from common import main


class L(yaml.SafeLoader):
    pass
ACT = {'session_created', 'session_paused', 'session_resumed', 'session_completed', 'session_aborted', 'phase_advanced', 'checkpoint', 'budget_extended'}


def one(p):
    t = open(p, encoding='utf-8').read()
    n = os.path.basename(os.path.dirname(p))
    try:
        D = yaml.safe_load(t)
    except yaml.YAMLError as e:
        wrong(f'{p}: corrupted: {e}')
        return
    if not isinstance(D, dict):
        wrong(p + ': not a mapping')
        return
    for l in t.splitlines():
        if re.match('^\\s*[\\w-]+:\\s*[\\[{](?!\\s*[\\]}])', l):
            wrong(f'single-line JSON style: {l[:90]}')
    s = member(D, 'session_id', str, n)
    if s and (not re.fullmatch('session_\\d{8}_\\d{6}_(\\d{6}|[0-9a-f]{6})', s)):
        wrong(f'session_id format {s}')
    if s != n:
        wrong(f'folder {n} != session_id {s}')
    st = D.get('state')
    one_of(st, ['active', 'paused', 'completed', 'aborted'], 'state')
    member(D, 'workflow_type', str, n, null=True)
    ph = member(D, 'current_phase', str, n, null=True)
    a = member(D, 'attempt_number', int, n)
    if a is not None and a < 1:
        wrong('attempt_number<1')

    def T(v, name, null=False):
        if v is None and null:
            return None
        if not isinstance(v, str):
            wrong(f'{name}: not a string for fromisoformat: {v!r}')
            return None
        try:
            d = datetime.datetime.fromisoformat(v)
        except ValueError:
            wrong(f'{name}: not ISO: {v}')
            return None
        if d.tzinfo is not None:
            wrong(f'{name}: an offset, unlike utcnow(): {v}')
            return None
        return d.replace(tzinfo=datetime.timezone.utc)
    c = T(D.get('created_at'), 'created_at')
    u = T(D.get('updated_at'), 'updated_at')
    if 'completed_at' not in D:
        wrong('no completed_at')
    e = T(D.get('completed_at'), 'completed_at', null=True)
    if c and u and (c > u):
        wrong('created_at>updated_at')
    if e and u and (e > u):
        wrong('completed_at>updated_at')
    if e and st not in ('completed', 'aborted'):
        wrong('completed_at while ' + str(st))
    if not e and st in ('completed', 'aborted'):
        wrong('no completed_at while ' + str(st))
    B = member(D, 'token_budget', dict, n) or {}
    tb = member(B, 'total_budget', int, 'token_budget')
    tu = member(B, 'tokens_used', int, 'token_budget')
    if tb is not None and tb <= 0:
        wrong('total_budget<=0')
    if tu is not None and tu < 0:
        wrong('tokens_used<0')
    r = [k for k in B if 'remaining' in k]
    if not r:
        pass
    elif tb is not None and tu is not None and (B[r[0]] != tb - tu):
        wrong(f'remaining {B[r[0]]} != {tb}-{tu}')
    for i, x in enumerate(member(D, 'artifacts', list, n) or []):
        m = f'artifacts[{i}]'
        p = member(x, 'path', str, m)
        if p and (os.path.isabs(p) or p.startswith('..')):
            wrong(m + ' path not relative: ' + p)
        one_of(x.get('artifact_type'), ['created', 'modified'], m + '.artifact_type')
        T(x.get('timestamp'), m + '.timestamp')
        member(x, 'phase', str, m, null=True)
    H = member(D, 'history', list, n)
    if not H:
        wrong('history empty')
        return
    prev = None
    life = None
    phs = None
    for i, x in enumerate(H):
        m = f'history[{i}]'
        t = T(x.get('timestamp'), m + '.timestamp')
        ac = member(x, 'action', str, m)
        if not ac:
            wrong(m + ' action empty')
        member(x, 'phase', str, m, null=True)
        member(x, 'details', str, m, null=True)
        if t and prev and (t < prev):
            wrong(m + ' not chronological')
        prev = t
        if ac and ac.startswith('session_') and (ac in ACT):
            life = ac
        if ac == 'phase_advanced':
            g = re.fullmatch('from (.*) to (.*)', x.get('details') or '')
            if not g:
                wrong(f"{m} phase_advanced details {x.get('details')!r}")
            else:
                phs = g[2]
        if ac == 'budget_extended' and (not re.fullmatch('added \\d+ tokens', x.get('details') or '')):
            wrong(f"{m} budget_extended details {x.get('details')!r}")
    if H[0].get('action') != 'session_created':
        wrong('history[0] is ' + str(H[0].get('action')))
    want = {'active': ('session_created', 'session_resumed'), 'paused': ('session_paused',), 'completed': ('session_completed',), 'aborted': ('session_aborted',)}.get(st, ())
    if life not in want:
        wrong(f'state {st} but last transition in history {life}')
    if phs is not None and phs != ph:
        wrong(f'current_phase {ph} but history says {phs}')
    if prev and u and (prev > u):
        wrong('history after updated_at')


def check(d):
    if not os.path.isdir(d):
        wrong('no folder')
        return
    k = 0
    for x in sorted(os.listdir(d)):
        p = f'{d}/{x}/session.yaml'
        if os.path.isdir(f'{d}/{x}'):
            if os.path.exists(p):
                one(p)
                k += 1
            else:
                wrong(f'{x}: no session.yaml')
    if not k:
        wrong('no session')


if __name__ == '__main__':
    main(check)
