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
for options in Redis::VERSION.to_i < 5 ? [{}] : [{ protocol: 2 }, { protocol: 3 }] # RESP3 since 5.0
  client = Redis.new(url: ENV.fetch('REDIS_URL'), **options)
  check.call(client, '64 bits', client.incrby(key, 2**63 - 1), 2**63 - 1)
  for file in (ARGV.empty? ? Dir["#{__dir__}/../../*_v*.json"] : ARGV).map { |path| JSON.parse(File.read(path)) }
    allow = limiter(client, "#{__dir__}/../../../lua/#{file['script']}.lua")
    for group in file['groups']
      for test in group['tests']
        client.set(key, [test['key']['hex']].pack('H*')) if test['key']['kind'] == 'string'
        client.rpush(key, 'a') if test['key']['kind'] == 'list'
        client.pexpire(key, test['key']['ttl_ms'].to_i) unless test['key']['ttl_ms'].empty?
        for step in test['steps']
          answer = allow.call(key, *group['argv'], *step['argv']).map(&:to_s) rescue $!.message.split.first
          state = client.type(key) == 'string' ? client.get(key).unpack1('H*') : ''
          ttl_ms, (least, most) = client.pttl(key), step['ttl_ms']
          kept = least.empty? ? ttl_ms.negative? : ttl_ms.between?(least.to_i, most.to_i)
          got = [answer, state, kept ? [least, most] : ttl_ms]
          want = [step['error'].empty? ? step['reply'] : step['error'], step['state'], [least, most]]
          break if got != want
        end
        check.call(client, "#{file['script']} #{test['id']}", got, want)
      end
      for stream in group['streams']
        sha256, now_ns = Digest::SHA256.new, stream['now_ns'].to_i
        stream['calls'].times do
          reply = allow.call(key, *group['argv'], stream['cost'], now_ns)
          sha256 << "#{reply.join(' ')}\n"
          now_ns += reply[2]
        end
        check.call(client, "#{file['script']} #{stream['id']}", sha256.hexdigest, stream['sha256'])
      end
    end
  end
end
puts "#{results.count(true)} passed, #{results.count(false)} failed"
exit results.all?
