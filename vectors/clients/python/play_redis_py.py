"""Plays the vectors on the server at REDIS_URL: python3 play_redis_py.py [file ...]; needs redis-py.
With - for the files it makes the reservations that its input says."""
import hashlib, json, os, re, secrets, sys
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis_py import reserver

vectors = Path(__file__).resolve().parents[2]
name, results = f'tatami:{secrets.token_hex(8)}', []

def reservations(lines): # reserve,key,kind,amount,period_ns,burst,name,cost,key,... or settle,used,...
    client = redis.from_url(os.environ['REDIS_URL'], retry=Retry(NoBackoff(), 2), retry_on_error=[redis.ConnectionError])
    reserve, settle = reserver(client, vectors.parent / 'lua/limits_v1.lua')
    for verb, *words in (line.strip().split(',') for line in lines):
        try:
            if verb == 'reserve':
                columns = ['kind', 'amount', 'period_ns', 'burst', 'name']
                asks = [words[i:i + 7] for i in range(0, len(words), 7)]
                held = reserve(*[(key, dict(zip(columns, limit)), int(cost)) for key, *limit, cost in asks])
                binds = '' if held.binds is None else held.binds
                answer = [held.status, held.retry_after_ns, binds]
                for *numbers, receipt in held.results:
                    answer += [*numbers, receipt.decode()]
                print(*answer, sep='|', flush=True)
            else:
                settle(held, *map(int, words))
                print('settled', flush=True)
        except Exception as e:
            print('error', e, flush=True)

def check(label, got, want):
    results.append(got == want)
    if got != want:
        print(f'{label}: got {got}, want {want}')

def fit(got, want):  # want, where got is like it: 7, a number in 0..7, a text, a list of these
    if isinstance(got, list):
        return [fit(*pair) for pair in zip(got, want)] if isinstance(want, list) and len(got) == len(want) else got
    got = got.decode() if isinstance(got, bytes) else str(got)
    least, dots, most = want.partition('..') if isinstance(want, str) else ('', '', '')
    return want if dots and int(least) <= int(got) <= int(most) else got

def play(client, path):
    file = json.loads(Path(path).read_text())
    text = (vectors.parent / f'lua/{file["script"]}.lua').read_bytes()
    for group in file['groups']:
        script = client.register_script(group['setting']['prelude'].encode() + text)
        for test in group['tests']:
            keys = [f'{name}:{i}' for i in range(len(test['keys']))]
            named = {'each': keys, 'none': [], 'again': [*keys, *keys[:1]]}[group['setting']['keys']]
            for key, before in zip(keys, test['keys']):
                if before['kind'] == 'string':
                    client.set(key, bytes.fromhex(before['hex']))
                if before['kind'] == 'list':
                    client.rpush(key, 'a')
            for step in test['steps']:
                for key, expire in zip(keys, step['expire']):
                    if expire == 'none':
                        client.persist(key)
                    elif expire:
                        client.pexpire(key, expire)
                try:
                    answer = fit(script(keys=named, args=[*group['argv'], *step['argv']]), step['reply'])
                except redis.ResponseError as e:
                    answer = step['error'] if step['error'] and str(e).startswith(step['error']) else str(e)
                states = [client.get(key).hex() if client.type(key) == b'string' else '' for key in keys]
                states = [want if re.fullmatch(want, got) else got for got, want in zip(states, step['state'])]
                got = answer, states, fit([client.pttl(key) for key in keys], step['ttl_ms'])
                want = step['error'] or step['reply'], step['state'], step['ttl_ms']
                if got != want:
                    break
            check(f'{file["script"]} {test["id"]}', got, want)
            client.delete(*keys)
        for stream in group['streams']:
            sha256, now_ns = hashlib.sha256(), int(stream['now_ns'])
            for _ in range(stream['calls']):
                reply = script(keys=[name], args=[*group['argv'], stream['cost'], now_ns])
                sha256.update(('%d %d %d %d\n' % tuple(reply)).encode())
                now_ns += reply[2]
            check(f'{file["script"]} {stream["id"]}', sha256.hexdigest(), stream['sha256'])
            client.delete(name)

if sys.argv[1:] == ['-']:
    sys.exit(reservations(iter(sys.stdin.readline, '')))
for options in [{}] if redis.VERSION < (5,) else [{'protocol': 2}, {'protocol': 3}]:  # RESP3 since 5.0
    client = redis.from_url(os.environ['REDIS_URL'], **options)
    check('64 bits', client.incrby(name, 2**63 - 1), 2**63 - 1)
    client.delete(name)
    for path in sys.argv[1:] or vectors.glob('*_v*.json'):
        play(client, path)
print(f'{results.count(True)} passed, {results.count(False)} failed')
sys.exit(not all(results))
