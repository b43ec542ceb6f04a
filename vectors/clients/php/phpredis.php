<?php // Calls Tatami's scripts by phpredis, on 64 bits. A file to copy; lua/README.md is the contract.

/** $path: of a script. Returns a function of keys and arguments. phpredis never sends again what it has sent. */
function script(Redis $client, string $path): callable
{
    $text = file_get_contents($path);
    $sha = sha1($text);
    return function (array $keys, array $args) use ($client, $text, $sha): array {
        $client->clearLastError();
        $reply = $client->evalSha($sha, [...$keys, ...$args], count($keys));
        if ($reply === false && str_starts_with((string) $client->getLastError(), 'NOSCRIPT')) {
            $reply = $client->eval($text, [...$keys, ...$args], count($keys));
        }
        // phpredis throws on some errors, and answers false on others.
        return $reply ?: throw new RedisException($client->getLastError());
    };
}

/** $path: of gcra_v2.lua or window_v1.lua. Returns allow. */
function limiter(Redis $client, string $path): callable
{
    $call = script($client, $path);
    // $args: amount, period_ns, burst or mode, cost[, now_ns].
    // Returns [status, remaining, retry_after_ns, reset_after_ns].
    return fn (string $key, ...$args): array => $call([$key], $args);
}

/**
 * $path: of limits_v1.lua. Returns reserve and settle. An ask is [key, limit, cost]. A limit is an array of
 * kind (gcra, fixed or sliding), amount, period_ns, for gcra burst, and name, which may be left out.
 */
function reserver(Redis $client, string $path): array
{
    $call = script($client, $path);
    $send = function (array $asks) use ($call): array {
        [$keys, $args] = [[], ['']]; // '': the server's clock
        foreach ($asks as [$key, $limit, $cost, $receipt]) {
            $keys[] = limitKey($key, $limit);
            array_push($args, $limit['kind'], $limit['amount'], $limit['period_ns'], $limit['burst'] ?? '', $cost, $receipt);
        }
        return $call($keys, $args);
    };
    // Charges all asks, or none. Returns status (1 charged, 0 refused, -1 never), retry_after_ns,
    // results (for each ask [status, remaining, retry_after_ns, reset_after_ns, receipt]) and
    // binds, the number of the ask that refuses, from 0.
    $reserve = function (array ...$asks) use ($send): object {
        $results = $send(array_map(fn (array $ask) => [...$ask, ''], $asks));
        [$status, $wait] = array_splice($results, 0, 2);
        $binds = $status === 1 ? null : array_search($wait, array_column($results, 2), true);
        return (object) ['status' => $status, 'retry_after_ns' => $wait, 'results' => $results,
            'binds' => $binds, 'asks' => $asks, 'settled' => false];
    };
    // $used: of each ask the units really used; all 0 cancels. Sends once, and only once.
    $settle = function (object $reservation, int ...$used) use ($send): void {
        if (count($used) !== count($reservation->asks) || min($used) < 0) {
            throw new ValueError('used must be a number from 0 for each ask');
        }
        $changes = [];
        foreach ($reservation->asks as $i => [$key, $limit, $cost]) {
            $receipt = $reservation->results[$i][4];
            $change = $receipt === '' ? $used[$i] : $used[$i] - $cost; // without one nothing was charged
            if ($change !== 0 && $receipt === '') {
                throw new ValueError('used more than 0 of what was not charged');
            }
            if ($change !== 0) {
                $changes[] = [$key, $limit, $change, $receipt];
            }
        }
        if ($changes && !$reservation->settled) {
            $reservation->settled = true; // also when the call fails: a second give-back admits too much
            $send($changes);
        }
    };
    return [$reserve, $settle];
}

/** The key that the Go loader and tatami use. */
function limitKey(string $key, array $limit): string
{
    $name = $limit['name'] ?? '';
    if ($key === '' || !preg_match('/^([A-Za-z][A-Za-z0-9_.-]{0,99})?$/D', $name)) {
        throw new ValueError("no key, or a bad name: $key, $name");
    }
    $period = $limit['kind'] === 'gcra' ? '' : (string) $limit['period_ns'];
    return implode(':', array_filter(['rl', str_contains($key, '{') ? $key : '{' . $key . '}', $name, $period], 'strlen'));
}
