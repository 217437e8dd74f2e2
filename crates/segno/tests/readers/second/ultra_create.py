"""A second reader of ultra-create sessions, written from the document by somebody who did not know the program.
"""
import gzip
import json
import os
import re
import sys
import uuid

from common import VIOLATIONS
from common import wrong
from common import load
from common import moment
from common import member
from common import one_of
from common import main

# The document's three reasons, and what somebody asked for.
REA = ['phase_complete', 'milestone', 'pre_risky', 'asked']


def sess(D, n):
    s = member(D, 'session_id', str, n)
    try:
        uuid.UUID(s)
    except Exception:
        wrong(f'{n} session_id not UUID {s}')
    c = moment(D.get('created_at'), n + '.created_at')
    u = moment(D.get('updated_at'), n + '.updated_at')
    if c and u and (u < c):
        wrong(n + ' updated<created')
    one_of(D.get('status'), ['active', 'paused', 'completed', 'crashed'], n + '.status')
    P = member(D, 'project', dict, n) or {}
    for k in ('path', 'name', 'type'):
        member(P, k, str, n + '.project')
    C = member(D, 'context', dict, n) or {}
    member(C, 'user_intent', str, n)
    member(C, 'current_phase', str, n)
    x = member(C, 'progress_percent', (int, float), n)
    if x is not None and (not 0 <= x <= 100):
        wrong(n + ' progress ' + str(x))
    A = member(D, 'agents', dict, n) or {}
    for a in member(A, 'active', list, n) or []:
        if not isinstance(a, str):
            wrong(n + ' active ' + repr(a))
        elif a not in (A.get('states') or {}):
            wrong(f'{n} active agent {a} without state')
    member(A, 'states', dict, n)
    T = member(D, 'tools', dict, n) or {}
    for w in ('history', 'pending'):
        prev = None
        for i, t in enumerate(member(T, w, list, n) or []):
            m = f'{n}.tools.{w}[{i}]'
            member(t, 'tool', str, m)
            if 'input' not in t:
                wrong(m + ' no input')
            if 'output' not in t and w == 'history':
                wrong(m + ' no output')
            z = moment(t.get('timestamp'), m)
            if prev and z and (z < prev):
                wrong(m + ' order')
            prev = z
    d = member(D, 'decisions', dict, n) or {}
    member(d, 'tree', list, n)
    member(d, 'current_branch', str, n)
    m = member(D, 'memory', dict, n) or {}
    member(m, 'hindsight_queries', list, n)
    member(m, 'context7_lookups', list, n)
    member(m, 'local_cache', dict, n)
    f = member(D, 'files', dict, n) or {}
    for k in ('created', 'modified', 'deleted'):
        for p in member(f, k, list, n) or []:
            if not isinstance(p, str):
                wrong(n + ' file ' + repr(p))
    e = member(D, 'errors', dict, n) or {}
    c = member(e, 'count', int, n)
    l = member(e, 'log', list, n)
    if c is not None and l is not None and (c < len(l)):
        wrong(f'{n} errors.count {c} < {len(l)}')
    for i, k in enumerate(member(D, 'checkpoints', list, n) or []):
        cpt(k, f'{n}.checkpoints[{i}]')
    if len(D.get('checkpoints') or []) > 5:
        wrong(f"{n} {len(D['checkpoints'])} checkpoints > 5 max_per_session")
    return s


def cpt(k, m):
    i = member(k, 'id', str, m)
    if i and (not re.fullmatch('checkpoint_\\d{13}', i)):
        wrong(m + ' id ' + i)
    one_of(k.get('reason'), REA, m + '.reason')
    t = moment(k.get('timestamp'), m)
    if i and t and (abs(int(i[11:] or 0) - t.timestamp() * 1000) > 1000):
        wrong(f"{m} id {i} vs {k.get('timestamp')}")
    a = member(k, 'tool_count', int, m)
    b = member(k, 'progress', (int, float), m)
    if b is not None and (not 0 <= b <= 100):
        wrong(m + ' progress')
    return i


def check(d):
    if not os.path.isdir(d):
        wrong('no folder')
        return
    cur = load(d + '/current-session.json')
    cps = set()
    if cur is not None:
        sess(cur, 'current')
        cps |= {c.get('id') for c in cur.get('checkpoints', [])}
    elif not VIOLATIONS and (not any((x.startswith('session_') for x in os.listdir(d)))):
        wrong('no current-session.json')
    for x in sorted(os.listdir(d)):
        p = d + '/' + x
        if x.startswith('session_') and x.endswith('.json'):
            D = load(p)
            if D:
                s = sess(D, x)
                if x != f'session_{s}.json':
                    wrong(f'{x}: id {s}')
                if D.get('status') not in ('completed', 'crashed'):
                    wrong(f"{x}: archived with {D.get('status')}")
                cps |= {c.get('id') for c in D.get('checkpoints', [])}
        if x.endswith('.json.gz'):
            try:
                t = gzip.open(p).read()
            except FileNotFoundError:
                continue
            except Exception as e:
                wrong(f'{x}: {e!r}')
                continue
            try:
                g = json.loads(t)
            except ValueError as e:
                wrong(f'{x}: {e}')
                continue
            if os.path.exists(p[:-3]) and g != load(p[:-3]) and ('--live' not in sys.argv):
                wrong(f'{x} differs from plain')
            if len(open(p, 'rb').read()) > 102400:
                wrong(x + ' > 100 KB')
    for x in sorted(os.listdir(d)):
        if re.fullmatch('checkpoint_.*\\.json', x):
            D = load(d + '/' + x)
            if D:
                i = cpt(D, x)
                if i and x != i + '.json':
                    wrong(f'{x} id {i}')
                if i not in cps and '--live' not in sys.argv:
                    wrong(f'{x}: belongs to no session')


if __name__ == '__main__':
    main(check)
