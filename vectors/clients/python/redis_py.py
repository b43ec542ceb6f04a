"""Plays the vectors on the server at REDIS_URL: python3 redis_py.py [file ...]; needs redis-py."""
import hashlib, json, os, re, redis, secrets, sys
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
vectors = Path(__file__).resolve().parents[2]
key, results = f'tatami:{secrets.token_hex(8)}', []

def check(name, got, want):
    results.append(got == want)
    if got != want:
        print(f'{name}: got {got}, want {want}')
    client.delete(key)

def fit(got, want):  # want, where the number lies in it: 7, or 0..7
    least, _, most = want.partition('..')
    return want if int(least) <= got <= int(most or least) else str(got)

for options in [{}] if redis.VERSION < (5,) else [{'protocol': 2}, {'protocol': 3}]:  # RESP3 since 5.0
    client = redis.from_url(os.environ['REDIS_URL'], **options)
    check('64 bits', client.incrby(key, 2**63 - 1), 2**63 - 1)
    for file in [json.loads(Path(path).read_text()) for path in sys.argv[1:] or vectors.glob('*_v*.json')]:
        path = vectors.parent / f'lua/{file["script"]}.lua'
        for group in file['groups']:
            allow, keys, prelude = limiter(client, path), group['setting']['keys'], group['setting']['prelude']
            if prelude or keys != 1:
                def allow(key, *args):
                    return client.eval(prelude + path.read_text(), keys, *[key] * keys, *args)
            for test in group['tests']:
                if test['key']['kind'] == 'string':
                    client.set(key, bytes.fromhex(test['key']['hex']))
                if test['key']['kind'] == 'list':
                    client.rpush(key, 'a')
                for step in test['steps']:
                    if step['expire'] == 'none':
                        client.persist(key)
                    elif step['expire']:
                        client.pexpire(key, step['expire'])
                    try:
                        answer = [*map(fit, allow(key, *group['argv'], *step['argv']), step['reply'])]
                    except redis.ResponseError as e:
                        answer = step['error'] if step['error'] and str(e).startswith(step['error']) else str(e)
                    state = client.get(key).hex() if client.type(key) == b'string' else ''
                    state = step['state'] if re.fullmatch(step['state'], state) else state
                    got = answer, state, fit(client.pttl(key), step['ttl_ms'])
                    want = step['error'] or step['reply'], step['state'], step['ttl_ms']
                    if got != want:
                        break
                check(f'{file["script"]} {test["id"]}', got, want)
            for stream in group['streams']:
                sha256, now_ns = hashlib.sha256(), int(stream['now_ns'])
                for _ in range(stream['calls']):
                    reply = allow(key, *group['argv'], stream['cost'], now_ns)
                    sha256.update(('%d %d %d %d\n' % tuple(reply)).encode())
                    now_ns += reply[2]
                check(f'{file["script"]} {stream["id"]}', sha256.hexdigest(), stream['sha256'])
print(f'{results.count(True)} passed, {results.count(False)} failed')
sys.exit(not all(results))
