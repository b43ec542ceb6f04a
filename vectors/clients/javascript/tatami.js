// Calls Tatami's scripts. To copy with ioredis.js or node_redis.js, which make call of a
// client and a script; lua/README.md is the contract.

// call: of gcra_v2.lua or window_v1.lua.
export function limiter(call) {
  // args: amount, period_ns, burst or mode, cost[, now_ns].
  // Returns [status, remaining, retry_after_ns, reset_after_ns], as BigInt.
  return async function allow(key, ...args) {
    return (await call([key], args)).map(BigInt)
  }
}

// call: of limits_v1.lua. An ask is { key, limit, cost }. A limit is { kind (gcra, fixed or
// sliding), amount, period_ns, burst (gcra's), name (which may be left out) }.
export function reserver(call) {
  const send = (asks) => call(asks.map(({ key, limit }) => limitKey(key, limit)), ['', // the server's clock
    ...asks.flatMap(({ limit: { kind, amount, period_ns, burst = '' }, cost, receipt = '' }) =>
      [kind, amount, period_ns, burst, cost, receipt])])

  // Charges all asks, or none. Returns status (1n charged, 0n refused, -1n never),
  // retry_after_ns, results (for each ask [status, remaining, retry_after_ns,
  // reset_after_ns, receipt]) and binds, the number of the ask that refuses, from 0.
  async function reserve(...asks) {
    const [status, wait, ...rest] = await send(asks)
    const results = rest.map((result) => [...result.slice(0, 4).map(BigInt), String(result[4])])
    const binds = Number(status) === 1 ? null : results.findIndex((result) => result[2] === BigInt(wait))
    return { status: BigInt(status), retry_after_ns: BigInt(wait), results, binds, asks, settled: false }
  }

  // used: of each ask the units really used; all 0 cancels. Sends once, and only once.
  async function settle(reservation, ...used) {
    if (used.length !== reservation.asks.length || !used.every((units) => units >= 0))
      throw new RangeError('used must be a number from 0 for each ask')
    const changes = reservation.asks.map(({ key, limit, cost }, i) => {
      const receipt = reservation.results[i][4]
      const change = BigInt(used[i]) - (receipt ? BigInt(cost) : 0n) // without one nothing was charged
      if (change && !receipt) throw new RangeError('used more than 0 of what was not charged')
      return { key, limit, cost: change, receipt }
    }).filter(({ cost }) => cost)
    if (!changes.length || reservation.settled) return
    reservation.settled = true // also when the call fails: a second give-back admits too much
    await send(changes)
  }

  return { reserve, settle }
}

// The key that the Go loader and tatami use.
export function limitKey(key, { kind, period_ns, name = '' }) {
  if (!key || !/^([A-Za-z][A-Za-z0-9_.-]{0,99})?$/.test(name)) throw new RangeError(`no key, or a bad name: ${key}, ${name}`)
  return ['rl', key.includes('{') ? key : `{${key}}`, name, kind === 'gcra' ? '' : String(period_ns)].filter(Boolean).join(':')
}
