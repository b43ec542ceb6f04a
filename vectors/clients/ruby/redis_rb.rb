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
fit = lambda do |got, want| # want, where the number lies in it: 7, or 0..7
  least, most = want.split('..').map(&:to_i)
  got.between?(least, most || least) ? want : got
end
for options in Redis::VERSION.to_i < 5 ? [{}] : [{ protocol: 2 }, { protocol: 3 }] # RESP3 since 5.0
  client = Redis.new(url: ENV.fetch('REDIS_URL'), **options)
  check.call(client, '64 bits', client.incrby(key, 2**63 - 1), 2**63 - 1)
  for file in (ARGV.empty? ? Dir["#{__dir__}/../../*_v*.json"] : ARGV).map { |path| JSON.parse(File.read(path)) }
    path = "#{__dir__}/../../../lua/#{file['script']}.lua"
    for group in file['groups']
      allow, setting = limiter(client, path), group['setting']
      if setting['keys'] != 1 || setting['prelude'] != ''
        text, names = setting['prelude'] + File.binread(path), [key] * setting['keys']
        allow = ->(_, *args) { client.eval(text, keys: names, argv: args) }
      end
      for test in group['tests']
        client.set(key, [test['key']['hex']].pack('H*')) if test['key']['kind'] == 'string'
        client.rpush(key, 'a') if test['key']['kind'] == 'list'
        for step in test['steps']
          step['expire'] == 'none' ? client.persist(key) : client.pexpire(key, step['expire'].to_i) unless step['expire'].empty?
          answer = allow.call(key, *group['argv'], *step['argv']).zip(step['reply']).map { |got, want| fit.call(got, want) } rescue $!.message
          answer = step['error'] if answer.is_a?(String) && !step['error'].empty? && answer.start_with?(step['error'])
          state = client.type(key) == 'string' ? client.get(key).unpack1('H*') : ''
          state = step['state'] if state.match?(/\A#{step['state']}\z/)
          got = [answer, state, fit.call(client.pttl(key), step['ttl_ms'])]
          want = [step['error'].empty? ? step['reply'] : step['error'], step['state'], step['ttl_ms']]
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
