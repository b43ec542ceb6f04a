# Calls Tatami's scripts by redis-rb. A file to copy; lua/README.md is the contract.
require 'digest'
require 'redis'

# path: of a script. Returns a lambda of keys and arguments.
def script(client, path)
  text = File.binread(path)
  sha = Digest::SHA1.hexdigest(text)
  lambda do |keys, argv|
    client.evalsha(sha, keys: keys, argv: argv)
  rescue Redis::CommandError => e
    raise unless e.message.start_with?('NOSCRIPT')
    client.eval(text, keys: keys, argv: argv)
  end
end

# path: of gcra_v2.lua or window_v1.lua. Returns allow.
def limiter(client, path)
  call = script(client, path)
  # args: amount, period_ns, burst or mode, cost[, now_ns].
  # Returns [status, remaining, retry_after_ns, reset_after_ns].
  ->(key, *args) { call.([key], args) }
end

Ask = Struct.new(:key, :limit, :cost, :receipt)
Reservation = Struct.new(:status, :retry_after_ns, :results, :binds, :asks, :settled)

# path: of limits_v1.lua. Returns reserve and settle. A limit is a hash of kind (gcra, fixed or
# sliding), amount, period_ns, for gcra burst, and name, which may be left out.
def reserver(client, path)
  call = script(client, path)
  send = lambda do |asks|
    args = asks.flat_map { |ask| [*ask.limit.values_at(:kind, :amount, :period_ns, :burst), ask.cost, ask.receipt].map(&:to_s) }
    call.(asks.map { |ask| limit_key(ask.key, ask.limit) }, ['', *args]) # '': the server's clock
  end

  # asks: [key, limit, cost] each. Charges all, or none. Returns status (1 charged, 0 refused,
  # -1 never), retry_after_ns, results (for each ask [status, remaining, retry_after_ns,
  # reset_after_ns, receipt]) and binds, the number of the ask that refuses, from 0.
  reserve = lambda do |*asks|
    asks = asks.map { |ask| Ask.new(*ask) }
    status, wait, *results = send.(asks)
    binds = status == 1 ? nil : results.index { |result| result[2] == wait }
    Reservation.new(status, wait, results, binds, asks, false)
  end

  # used: of each ask the units really used; all 0 cancels. Sends once, and only once.
  settle = lambda do |reservation, *used|
    raise ArgumentError, 'used must be a number from 0 for each ask' if used.size != reservation.asks.size || !used.all? { |units| units >= 0 }
    changes = reservation.asks.zip(used, reservation.results).map do |ask, units, (*, receipt)|
      change = receipt.empty? ? units : units - ask.cost # without one nothing was charged
      raise ArgumentError, 'used more than 0 of what was not charged' if change != 0 && receipt.empty?
      Ask.new(ask.key, ask.limit, change, receipt)
    end.reject { |ask| ask.cost == 0 }
    next if changes.empty? || reservation.settled
    reservation.settled = true # also when the call fails: a second give-back admits too much
    client.without_reconnect { send.(changes) } # reconnecting, it would send again
    nil
  end

  [reserve, settle]
end

# The key that the Go loader and tatami use.
def limit_key(key, limit)
  name = limit[:name].to_s
  raise ArgumentError, "no key, or a bad name: #{key}, #{name}" if key.empty? || !name.match?(/\A([A-Za-z][A-Za-z0-9_.-]{0,99})?\z/)
  ['rl', key.include?('{') ? key : "{#{key}}", name, limit[:kind] == 'gcra' ? '' : limit[:period_ns].to_s].reject(&:empty?).join(':')
end
