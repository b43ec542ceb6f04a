<?php // Plays the vectors on the server at REDIS_URL: php play_phpredis.php [file ...]; needs phpredis on 64 bits.
// With - for the files it makes the reservations that its input says.
require __DIR__ . '/phpredis.php';
const LUA = __DIR__ . '/../../../lua/';

$url = parse_url(getenv('REDIS_URL'));
($client = new Redis())->connect($url['host'], $url['port'] ?? 6379);
if (isset($url['pass'])) $client->auth(array_filter([$url['user'] ?? '', $url['pass']]));
[$name, $counts] = ['tatami:' . bin2hex(random_bytes(8)), ['passed' => 0, 'failed' => 0]];

function reservations(Redis $client): void // reserve,key,kind,amount,period_ns,burst,name,cost,key,... or settle,used,...
{
    [$reserve, $settle] = reserver($client, LUA . 'limits_v1.lua');
    while (($line = fgets(STDIN)) !== false) {
        $words = explode(',', rtrim($line));
        $verb = array_shift($words);
        try {
            if ($verb === 'reserve') {
                $asks = array_map(fn ($ask) => [$ask[0], array_combine(['kind', 'amount', 'period_ns', 'burst', 'name'], array_slice($ask, 1, 5)), (int) $ask[6]], array_chunk($words, 7));
                $held = $reserve(...$asks);
                echo implode('|', array_merge([$held->status, $held->retry_after_ns, $held->binds], ...$held->results)), "\n";
            } else {
                $settle($held, ...array_map('intval', $words));
                echo "settled\n";
            }
        } catch (Throwable $e) {
            echo "error {$e->getMessage()}\n";
        }
    }
}

$check = function (string $label, $got, $want) use (&$counts): void {
    $counts[$got === $want ? 'passed' : 'failed']++;
    if ($got !== $want) echo "$label: got ", json_encode($got), ', want ', json_encode($want), "\n";
};

function fit($got, $want) // $want, where $got is like it: 7, a number in 0..7, a text, a list of these
{
    if (is_array($got)) return is_array($want) && count($got) === count($want) ? array_map('fit', $got, $want) : $got;
    if (!is_string($want) || !str_contains($want, '..')) return (string) $got;
    [$least, $most] = explode('..', $want);
    return (int) $least <= $got && $got <= (int) $most ? $want : (string) $got;
}

if (array_slice($argv, 1) === ['-']) exit(reservations($client));
$check('64 bits', $client->incrBy($name, 9223372036854775807), 9223372036854775807);
$client->del($name);
foreach (array_slice($argv, 1) ?: glob(__DIR__ . '/../../*_v*.json') as $path) {
    ['script' => $script, 'groups' => $groups] = json_decode(file_get_contents($path), true);
    $path = LUA . "$script.lua";
    foreach ($groups as ['argv' => $lead, 'setting' => ['keys' => $which, 'prelude' => $prelude], 'tests' => $tests, 'streams' => $streams]) {
        $text = $prelude . file_get_contents($path);
        $call = $prelude === '' ? script($client, $path) : fn (array $keys, array $args) =>
            $client->eval($text, [...$keys, ...$args], count($keys)) ?: throw new RedisException($client->getLastError());
        foreach ($tests as ['id' => $id, 'keys' => $before, 'steps' => $steps]) {
            $keys = array_map(fn ($i) => "$name:$i", array_keys($before));
            $named = ['each' => $keys, 'none' => [], 'again' => [...$keys, $keys[0]]][$which];
            foreach ($before as $i => ['kind' => $kind, 'hex' => $hex]) {
                if ($kind === 'string') $client->set($keys[$i], hex2bin($hex));
                if ($kind === 'list') $client->rPush($keys[$i], 'a');
            }
            foreach ($steps as $step) {
                foreach ($step['expire'] as $i => $expire) {
                    if ($expire === 'none') $client->persist($keys[$i]);
                    elseif ($expire !== '') $client->pExpire($keys[$i], (int) $expire);
                }
                try { $answer = fit($call($named, [...$lead, ...$step['argv']]), $step['reply']); }
                catch (RedisException $e) { $answer = $e->getMessage(); }
                if ($step['error'] && is_string($answer) && str_starts_with($answer, $step['error'])) $answer = $step['error'];
                $states = array_map(function (string $key, string $want) use ($client): string {
                    $state = $client->type($key) === Redis::REDIS_STRING ? bin2hex($client->get($key)) : '';
                    return preg_match("/^$want\$/D", $state) ? $want : $state;
                }, $keys, $step['state']);
                $got = [$answer, $states, fit(array_map([$client, 'pttl'], $keys), $step['ttl_ms'])];
                $want = [$step['error'] ?: $step['reply'], $step['state'], $step['ttl_ms']];
                if ($got !== $want) break;
            }
            $check("$script $id", $got, $want);
            $client->del($keys);
        }
        foreach ($streams as $stream) {
            [$now_ns, $replies] = [(int) $stream['now_ns'], ''];
            for ($made = 0; $made < $stream['calls']; $made++, $now_ns += $reply[2]) {
                $reply = $call([$name], [...$lead, $stream['cost'], $now_ns]);
                $replies .= implode(' ', $reply) . "\n";
            }
            $check("$script $stream[id]", hash('sha256', $replies), $stream['sha256']);
            $client->del($name);
        }
    }
}
echo "$counts[passed] passed, $counts[failed] failed\n";
exit($counts['failed'] > 0 ? 1 : 0);
