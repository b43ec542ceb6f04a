# Plays the vectors on the server at REDIS_URL: ruby redis_rb.rb [file ...]; needs the gem redis.
require 'json'

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

key, results = "tatami:#{Random.urandom(8).unpack1('H*')}", []
check = lambda do |client, name, got, want|
  results << (got == want)
  puts "#{name}: got #{got}, want #{want}" if got != want
  client.del(key)
end

# The gem speaks RESP3 too since version 5.
(Redis::VERSION < '5' ? [{}] : [{ protocol: 2 }, { protocol: 3 }]).each do |options|
  client = Redis.new(url: ENV.fetch('REDIS_URL'), **options)
  check.call(client, '64 bits', client.incrby(key, 2**63 - 1), 2**63 - 1)
  (ARGV.empty? ? Dir["#{__dir__}/../*_v*.json"] : ARGV).each do |path|
    script, groups = JSON.parse(File.read(path)).values_at('script', 'groups')
    allow = limiter(client, "#{__dir__}/../../lua/#{script}.lua")
    groups.flat_map { |group| [group['argv']].product(group['tests']) }.each do |lead, test|
      held, got, want = test['key'], nil, nil
      client.set(key, [held['hex']].pack('H*')) if held['kind'] == 'string'
      client.rpush(key, 'a') if held['kind'] == 'list'
      client.pexpire(key, held['ttl_ms'].to_i) unless held['ttl_ms'].empty?
      test['steps'].each do |step|
        answer = allow.call(key, *lead, *step['argv']).map(&:to_s) rescue $!.message.split.first
        ttl_ms, (least, most) = client.pttl(key), step['ttl_ms']
        kept = least.empty? ? ttl_ms.negative? : ttl_ms.between?(least.to_i, most.to_i)
        state = client.type(key) == 'string' ? client.get(key).unpack1('H*') : ''
        got = [answer, state, kept ? step['ttl_ms'] : ttl_ms]
        want = [step['error'].empty? ? step['reply'] : step['error'], step['state'], step['ttl_ms']]
        break if got != want
      end
      check.call(client, "#{script} #{test['id']}", got, want)
    end
    groups.flat_map { |group| [group['argv']].product(group['streams']) }.each do |lead, stream|
      now_ns = stream['now_ns'].to_i
      replies = Array.new(stream['calls']) do
        reply = allow.call(key, *lead, stream['cost'], now_ns)
        now_ns += reply[2]
        "#{reply.join(' ')}\n"
      end
      check.call(client, "#{script} #{stream['id']}", Digest::SHA256.hexdigest(replies.join), stream['sha256'])
    end
  end
end
puts "#{results.count(true)} passed, #{results.count(false)} failed"
exit results.all?
