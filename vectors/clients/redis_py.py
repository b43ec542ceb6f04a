"""Plays the vectors on the server at REDIS_URL: python3 redis_py.py [file ...]; needs redis-py."""
import hashlib
import json
import os
import secrets
import sys

import redis

# sample
from pathlib import Path


def limiter(client, path):
    script = client.register_script(Path(path).read_bytes())

    def allow(key, *args):
        """args: amount, period_ns, burst or mode, cost[, now_ns].
        Returns [status, remaining, retry_after_ns, reset_after_ns]."""
        return script(keys=[key], args=args)  # EVALSHA; on NOSCRIPT it loads and calls again

    return allow
# end


vectors = Path(__file__).resolve().parent.parent
key = f'tatami:{secrets.token_hex(8)}'
counts = {True: 0, False: 0}


def check(name, got, want):
    counts[got == want] += 1
    if got != want:
        print(f'{name}: got {got}, want {want}')


def play(client, allow, lead, test):
    """Returns what the first wrong step did, or the last one, and the step."""
    if test['key']['kind'] == 'string':
        client.set(key, bytes.fromhex(test['key']['hex']))
    elif test['key']['kind'] == 'list':
        client.rpush(key, 'a')
    if test['key']['ttl_ms']:
        client.pexpire(key, test['key']['ttl_ms'])
    for step in test['steps']:
        error, reply = '', []
        try:
            reply = [str(number) for number in allow(key, *lead, *step['argv'])]
        except redis.ResponseError as e:
            error = str(e).split()[0]
        ttl_ms, (least, most) = client.pttl(key), step['ttl_ms']
        kept = int(least) <= ttl_ms <= int(most) if least else ttl_ms < 0
        state = client.get(key).hex() if client.type(key) == b'string' else ''
        got = {**step, 'error': error, 'reply': reply, 'state': state, 'ttl_ms': step['ttl_ms'] if kept else ttl_ms}
        if got != step:
            break
    return got, step


def digest(allow, lead, stream):
    sha256, now_ns = hashlib.sha256(), int(stream['now_ns'])
    for _ in range(stream['calls']):
        reply = allow(key, *lead, stream['cost'], now_ns)
        sha256.update(('%d %d %d %d\n' % tuple(reply)).encode())
        now_ns += reply[2]
    return sha256.hexdigest()


# redis-py 5 and later speak RESP3 too.
for options in [{}] if redis.VERSION < (5,) else [{'protocol': 2}, {'protocol': 3}]:
    client = redis.from_url(os.environ['REDIS_URL'], **options)
    check('64 bits', client.incrby(key, 2**63 - 1), 2**63 - 1)
    client.delete(key)
    for path in sys.argv[1:] or vectors.glob('*_v*.json'):
        file = json.loads(Path(path).read_text())
        script = vectors.parent / 'lua' / f'{file["script"]}.lua'
        check(f'{script} SHA1', hashlib.sha1(script.read_bytes()).hexdigest(), file['sha1'])
        allow = limiter(client, script)
        for group in file['groups']:
            for test in group['tests']:
                check(f'{file["script"]} {test["id"]}', *play(client, allow, group['argv'], test))
                client.delete(key)
            for stream in group['streams']:
                check(f'{file["script"]} {stream["id"]}', digest(allow, group['argv'], stream), stream['sha256'])
                client.delete(key)

print(f'{counts[True]} passed, {counts[False]} failed')
sys.exit(counts[False] > 0)
