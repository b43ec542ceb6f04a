"""Calls Tatami's scripts by redis-py. A file to copy; lua/README.md is the contract."""
import re
from pathlib import Path
from types import SimpleNamespace

import redis


def limiter(client, path):
    """path: of gcra_v2.lua or window_v1.lua. Returns allow."""
    script = client.register_script(Path(path).read_bytes())

    def allow(key, *args):
        """args: amount, period_ns, burst or mode, cost[, now_ns].
        Returns [status, remaining, retry_after_ns, reset_after_ns]."""
        return script(keys=[key], args=args)  # EVALSHA; on NOSCRIPT it loads and calls again

    return allow


def reserver(client, path):
    """path: of limits_v1.lua. Returns reserve and settle.

    An ask is (key, limit, cost). A limit is a dict of kind (gcra, fixed or sliding), amount,
    period_ns, for gcra burst, and name, which may be left out."""
    script = client.register_script(Path(path).read_bytes())
    # Another pool, as it is a connection that sends again. This one's never do.
    pool, never = client.connection_pool, dict(retry=None, retry_on_timeout=False, retry_on_error=[])
    once = redis.Redis(connection_pool=redis.ConnectionPool(
        pool.connection_class, **{**pool.connection_kwargs, **never}))

    def call(asks, costs, receipts, client):
        args = ['']  # the server's clock
        for (_, limit, _), cost, receipt in zip(asks, costs, receipts):
            args += [limit['kind'], limit['amount'], limit['period_ns'], limit.get('burst', ''), cost, receipt]
        return script(keys=[limit_key(key, limit) for key, limit, _ in asks], args=args, client=client)

    def reserve(*asks):
        """Charges all asks, or none. Returns status (1 charged, 0 refused, -1 never),
        retry_after_ns, results (for each ask [status, remaining, retry_after_ns,
        reset_after_ns, receipt]) and binds, the number of the ask that refuses, from 0."""
        status, wait, *results = call(asks, [cost for _, _, cost in asks], [''] * len(asks), client)
        binds = None if status == 1 else [result[2] for result in results].index(wait)
        return SimpleNamespace(status=status, retry_after_ns=wait, results=results, binds=binds,
                               asks=asks, settled=False)

    def settle(reservation, *used):
        """used: of each ask the units really used; all 0 cancels. Sends once, and only once."""
        if len(used) != len(reservation.asks) or not all(units >= 0 for units in used):
            raise ValueError('used must be a number from 0 for each ask')
        changes = []
        for ask, units, (*_, receipt) in zip(reservation.asks, used, reservation.results):
            change = units - ask[2] if receipt else units  # without one nothing was charged
            if change and not receipt:
                raise ValueError('used more than 0 of what was not charged')
            if change:
                changes.append((ask, change, receipt))
        if changes and not reservation.settled:
            reservation.settled = True  # also when the call fails: a second give-back admits too much
            call(*zip(*changes), once)

    return reserve, settle


def limit_key(key, limit):
    """The key that the Go loader and tatami use."""
    name = limit.get('name', '')
    if not key or not re.fullmatch('([A-Za-z][A-Za-z0-9_.-]{0,99})?', name):
        raise ValueError(f'no key, or a bad name: {key!r}, {name!r}')
    words = ['rl', key if '{' in key else '{' + key + '}', name]
    words.append('' if limit['kind'] == 'gcra' else str(limit['period_ns']))
    return ':'.join(filter(None, words))
