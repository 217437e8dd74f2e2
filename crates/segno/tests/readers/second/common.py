"""What the second readers share: what they find wrong is gathered and printed at the end.
"""
import datetime
import gzip
import hashlib
import json
import os
import re
import sys
import uuid


def now():
    return datetime.datetime.now(datetime.timezone.utc)
VIOLATIONS = []


def wrong(m):
    VIOLATIONS.append(m)


def load(p):
    try:
        with open(p, encoding='utf-8') as f:
            t = f.read()
    except FileNotFoundError:
        return None
    try:

        def nodup(prs):
            d = {}
            for k, v in prs:
                if k in d:
                    wrong(f'{p}: duplicate key {k}')
                d[k] = v
            return d
        return json.loads(t, object_pairs_hook=nodup)
    except ValueError as e:
        wrong(f'{p}: JSON parse error {e} len={len(t)}')
        return None


def moment(v, name, null=False, future=True):
    if v is None:
        if not null:
            wrong(f'{name}: null')
        return None
    if not isinstance(v, str):
        wrong(f'{name}: not a string: {v!r}')
        return None
    try:
        d = datetime.datetime.fromisoformat(v.replace('Z', '+00:00'))
    except ValueError:
        wrong(f'{name}: not ISO: {v}')
        return None
    if d.tzinfo is None:
        wrong(f'{name}: no offset: {v}')
        return None
    if future and d > now() + datetime.timedelta(seconds=1):
        wrong(f'{name}: future timestamp {v}')
    return d


def member(o, k, t, name, null=False, req=True):
    if k not in o:
        if req:
            wrong(f'{name}: Missing required field: {k}')
        return None
    v = o[k]
    if v is None:
        if not null:
            wrong(f'{name}.{k}: null')
        return None
    tt = t if isinstance(t, tuple) else (t,)
    if isinstance(v, bool) and bool not in tt or not isinstance(v, t):
        wrong(f'{name}.{k}: type {type(v).__name__} {v!r}')
        return None
    return v


def one_of(v, vals, name):
    if v not in vals:
        wrong(f'{name}: Invalid {v!r}, not in {vals}')


def sha256(v, name):
    if not isinstance(v, str) or not re.fullmatch('(sha256[:-])?[0-9a-f]{64}', v):
        wrong(f'{name}: not sha256: {v!r}')


def main(check):
    check(sys.argv[1])
    print('ok' if not VIOLATIONS else 'VIOLATIONS\n  ' + '\n  '.join(VIOLATIONS))
    sys.exit(bool(VIOLATIONS))
