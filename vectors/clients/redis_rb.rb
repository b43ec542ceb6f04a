# Plays the vectors on the server at REDIS_URL: ruby redis_rb.rb [file ...]; needs the gem redis.
require 'json'
require 'securerandom'

# sample
require 'digest'
require 'redis'

def limiter(client, path)
  text = File.binread(path)
  sha = Digest::SHA1.hexdigest(text)
  # args: amount, period_ns, burst or mode, cost[, now_ns].
  # Returns [status, remaining, retry_after_ns, reset_after_ns].
  lambda do |key, *args|
    client.evalsha(sha, keys: [key], argv: args)
  rescue Redis::CommandError => e
    raise unless e.message.start_with?('NOSCRIPT')

    client.eval(text, keys: [key], argv: args)
  end
end
# end

VECTORS = File.expand_path('..', __dir__)
KEY = "tatami:#{SecureRandom.hex(8)}".freeze
results = []
check = lambda do |name, got, want|
  results << (got == want)
  puts "#{name}: got #{got}, want #{want}" if got != want
end

# Returns what the first wrong step did, or the last one, and the step.
def play(client, allow, lead, test)
  client.set(KEY, [test['key']['hex']].pack('H*')) if test['key']['kind'] == 'string'
  client.rpush(KEY, 'a') if test['key']['kind'] == 'list'
  client.pexpire(KEY, test['key']['ttl_ms'].to_i) unless test['key']['ttl_ms'].empty?
  test['steps'].each.with_index(1) do |step, number|
    error, reply = begin
      ['', allow.call(KEY, *lead, *step['argv']).map(&:to_s)]
    rescue Redis::CommandError => e
      [e.message.split.first, []]
    end
    ttl_ms = client.pttl(KEY)
    least, most = step['ttl_ms']
    kept = least.empty? ? ttl_ms.negative? : ttl_ms.between?(least.to_i, most.to_i)
    state = client.type(KEY) == 'string' ? client.get(KEY).unpack1('H*') : ''
    got = step.merge('error' => error, 'reply' => reply, 'state' => state, 'ttl_ms' => kept ? step['ttl_ms'] : ttl_ms)
    return got, step if got != step || number == test['steps'].size
  end
end

def digest(allow, lead, stream)
  sha256 = Digest::SHA256.new
  now_ns = stream['now_ns'].to_i
  stream['calls'].times do
    reply = allow.call(KEY, *lead, stream['cost'], now_ns)
    sha256 << "#{reply.join(' ')}\n"
    now_ns += reply[2]
  end
  sha256.hexdigest
end

# The gem speaks RESP3 too since version 5.
(Redis::VERSION < '5' ? [{}] : [{ protocol: 2 }, { protocol: 3 }]).each do |options|
  client = Redis.new(url: ENV.fetch('REDIS_URL'), **options)
  check.call('64 bits', client.incrby(KEY, 2**63 - 1), 2**63 - 1)
  client.del(KEY)
  (ARGV.empty? ? Dir["#{VECTORS}/*_v*.json"] : ARGV).each do |path|
    file = JSON.parse(File.read(path))
    script = file['script']
    asset = "#{VECTORS}/../lua/#{script}.lua"
    check.call("#{script} SHA1", Digest::SHA1.file(asset).hexdigest, file['sha1'])
    allow = limiter(client, asset)
    file['groups'].each do |group|
      group['tests'].each do |test|
        check.call("#{script} #{test['id']}", *play(client, allow, group['argv'], test))
        client.del(KEY)
      end
      group['streams'].each do |stream|
        check.call("#{script} #{stream['id']}", digest(allow, group['argv'], stream), stream['sha256'])
        client.del(KEY)
      end
    end
  end
end

puts "#{results.count(true)} passed, #{results.count(false)} failed"
exit results.all?
