<?php // Plays the vectors on the server at REDIS_URL: php phpredis.php [file ...]; needs phpredis on 64 bits.
// sample
function limiter(Redis $client, string $path): callable
{
    $text = file_get_contents($path);
    $sha = sha1($text);
    // $args: amount, period_ns, burst or mode, cost[, now_ns].
    // Returns [status, remaining, retry_after_ns, reset_after_ns].
    return function (string $key, ...$args) use ($client, $text, $sha): array {
        $reply = $client->evalSha($sha, [$key, ...$args], 1);
        if ($reply === false && str_starts_with($client->getLastError(), 'NOSCRIPT')) {
            $reply = $client->eval($text, [$key, ...$args], 1);
        }
        // phpredis throws on some errors, and answers false on others.
        return $reply ?: throw new RedisException($client->getLastError());
    };
}
// end
$url = parse_url(getenv('REDIS_URL'));
($client = new Redis())->connect($url['host'], $url['port'] ?? 6379);
if (isset($url['pass'])) $client->auth(array_filter([$url['user'] ?? '', $url['pass']]));
[$key, $counts] = ['tatami:' . bin2hex(random_bytes(8)), ['passed' => 0, 'failed' => 0]];
$check = function (string $name, $got, $want) use ($client, $key, &$counts): void {
    $counts[$got === $want ? 'passed' : 'failed']++;
    if ($got !== $want) echo "$name: got ", json_encode($got), ', want ', json_encode($want), "\n";
    $client->del($key);
};
$fit = function (int $got, ?string $want) { // want, where the number lies in it: 7, or 0..7
    [$least, $most] = explode('..', "$want..$want");
    return (int) $least <= $got && $got <= (int) $most ? $want : $got;
};
$check('64 bits', $client->incrBy($key, 9223372036854775807), 9223372036854775807);
foreach (array_slice($argv, 1) ?: glob(__DIR__ . '/../../*_v*.json') as $path) {
    ['script' => $script, 'groups' => $groups] = json_decode(file_get_contents($path), true);
    $path = __DIR__ . "/../../../lua/$script.lua";
    foreach ($groups as ['argv' => $lead, 'setting' => ['keys' => $keys, 'prelude' => $prelude], 'tests' => $tests, 'streams' => $streams]) {
        $text = $prelude . file_get_contents($path);
        $allow = $keys === 1 && $prelude === '' ? limiter($client, $path) : fn (string $key, ...$args) =>
            $client->eval($text, [...array_fill(0, $keys, $key), ...$args], $keys) ?: throw new RedisException($client->getLastError());
        foreach ($tests as ['id' => $id, 'key' => $before, 'steps' => $steps]) {
            if ($before['kind'] === 'string') $client->set($key, hex2bin($before['hex']));
            if ($before['kind'] === 'list') $client->rPush($key, 'a');
            foreach ($steps as $step) {
                if ($step['expire'] === 'none') $client->persist($key);
                elseif ($step['expire'] !== '') $client->pExpire($key, (int) $step['expire']);
                try { $answer = array_map($fit, $allow($key, ...$lead, ...$step['argv']), $step['reply']); }
                catch (RedisException $e) { $answer = $e->getMessage(); }
                if ($step['error'] && is_string($answer) && str_starts_with($answer, $step['error'])) $answer = $step['error'];
                $state = $client->type($key) === Redis::REDIS_STRING ? bin2hex($client->get($key)) : '';
                if (preg_match("/^$step[state]\$/D", $state)) $state = $step['state'];
                $got = [$answer, $state, $fit($client->pttl($key), $step['ttl_ms'])];
                $want = [$step['error'] ?: $step['reply'], $step['state'], $step['ttl_ms']];
                if ($got !== $want) break;
            }
            $check("$script $id", $got, $want);
        }
        foreach ($streams as $stream) {
            [$now_ns, $replies] = [(int) $stream['now_ns'], ''];
            for ($call = 0; $call < $stream['calls']; $call++, $now_ns += $reply[2]) {
                $reply = $allow($key, ...$lead, ...[$stream['cost'], $now_ns]);
                $replies .= implode(' ', $reply) . "\n";
            }
            $check("$script $stream[id]", hash('sha256', $replies), $stream['sha256']);
        }
    }
}
echo "$counts[passed] passed, $counts[failed] failed\n";
exit($counts['failed'] > 0 ? 1 : 0);
