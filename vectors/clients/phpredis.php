<?php
// Plays the vectors on the server at REDIS_URL: php phpredis.php [file ...]; needs phpredis and a 64-bit PHP.

// sample
function limiter(Redis $client, string $path): callable
{
    $text = file_get_contents($path);
    $sha = sha1($text);
    // $args: amount, period_ns, burst or mode, cost[, now_ns].
    // Returns [status, remaining, retry_after_ns, reset_after_ns].
    return function (string $key, ...$args) use ($client, $text, $sha): array {
        $client->clearLastError();
        $reply = $client->evalSha($sha, [$key, ...$args], 1);
        if ($reply === false && str_starts_with($client->getLastError(), 'NOSCRIPT')) {
            $client->clearLastError();
            $reply = $client->eval($text, [$key, ...$args], 1);
        }
        // phpredis throws on some errors, and answers false on others.
        return $reply ?: throw new RedisException($client->getLastError());
    };
}
// end

$key = 'tatami:' . bin2hex(random_bytes(8));
$counts = ['passed' => 0, 'failed' => 0];

function check(string $name, $got, $want): void
{
    global $counts;
    $counts[$got === $want ? 'passed' : 'failed']++;
    if ($got !== $want) {
        echo "$name: got ", json_encode($got), ', want ', json_encode($want), "\n";
    }
}

// Returns what the first wrong step did, or the last one, and the step.
function play(Redis $client, callable $allow, string $key, array $lead, array $test): array
{
    match ($test['key']['kind']) {
        'string' => $client->set($key, hex2bin($test['key']['hex'])),
        'list' => $client->rPush($key, 'a'),
        'none' => null,
    };
    if ($test['key']['ttl_ms'] !== '') {
        $client->pExpire($key, (int) $test['key']['ttl_ms']);
    }
    foreach ($test['steps'] as $step) {
        [$error, $reply] = ['', []];
        try {
            $reply = array_map('strval', $allow($key, ...$lead, ...$step['argv']));
        } catch (RedisException $e) {
            $error = strtok($e->getMessage(), ' ');
        }
        $ttl_ms = $client->pttl($key);
        [$least, $most] = $step['ttl_ms'];
        $kept = $least === '' ? $ttl_ms < 0 : (int) $least <= $ttl_ms && $ttl_ms <= (int) $most;
        $state = $client->type($key) === Redis::REDIS_STRING ? bin2hex($client->get($key)) : '';
        $ttl_ms = $kept ? $step['ttl_ms'] : $ttl_ms;
        $got = array_replace($step, compact('error', 'reply', 'state', 'ttl_ms'));
        if ($got !== $step) {
            break;
        }
    }
    return [$got, $step];
}

function digest(callable $allow, string $key, array $lead, array $stream): string
{
    $sha256 = hash_init('sha256');
    $now_ns = (int) $stream['now_ns'];
    for ($call = 0; $call < $stream['calls']; $call++) {
        $reply = $allow($key, ...$lead, ...[$stream['cost'], $now_ns]);
        hash_update($sha256, implode(' ', $reply) . "\n");
        $now_ns += $reply[2];
    }
    return hash_final($sha256);
}

$url = parse_url(getenv('REDIS_URL'));
$client = new Redis();
$client->connect($url['host'], $url['port'] ?? 6379);
if (isset($url['pass'])) {
    $client->auth(array_filter([$url['user'] ?? '', $url['pass']]));
}
check('64 bits', $client->incrBy($key, 9223372036854775807), 9223372036854775807);
$client->del($key);
foreach (array_slice($argv, 1) ?: glob(__DIR__ . '/../*_v*.json') as $path) {
    ['script' => $script, 'sha1' => $sha1, 'groups' => $groups] = json_decode(file_get_contents($path), true);
    $asset = __DIR__ . "/../../lua/$script.lua";
    check("$script SHA1", sha1_file($asset), $sha1);
    $allow = limiter($client, $asset);
    foreach ($groups as $group) {
        foreach ($group['tests'] as $test) {
            check("$script $test[id]", ...play($client, $allow, $key, $group['argv'], $test));
            $client->del($key);
        }
        foreach ($group['streams'] as $stream) {
            check("$script $stream[id]", digest($allow, $key, $group['argv'], $stream), $stream['sha256']);
            $client->del($key);
        }
    }
}

echo "$counts[passed] passed, $counts[failed] failed\n";
exit($counts['failed'] > 0 ? 1 : 0);
