# Plays the vectors on the server at REDIS_URL: ruby play_redis_rb.rb [file ...]; needs the gem redis.
# With - for the files it makes the reservations that its input says.
require 'json'
require_relative 'redis_rb'

LUA = "#{__dir__}/../../../lua"
NAME, RESULTS = "tatami:#{Random.urandom(8).unpack1('H*')}", []

def reservations # reserve,key,kind,amount,period_ns,burst,name,cost,key,... or settle,used,...
  reserve, settle = reserver(Redis.new(url: ENV.fetch('REDIS_URL'), reconnect_attempts: 2), "#{LUA}/limits_v1.lua")
  held = nil
  $stdout.sync = true
  while (line = $stdin.gets)
    verb, *words = line.chomp.split(',', -1)
    begin
      if verb == 'reserve'
        asks = words.each_slice(7).map { |key, *limit, cost| [key, %i[kind amount period_ns burst name].zip(limit).to_h, cost.to_i] }
        held = reserve.(*asks)
        puts [held.status, held.retry_after_ns, held.binds, *held.results.flatten].join('|')
      else
        settle.(held, *words.map { |word| Integer(word) })
        puts 'settled'
      end
    rescue StandardError => e
      puts "error #{e.message}"
    end
  end
end

def check(label, got, want)
  RESULTS << (got == want)
  puts "#{label}: got #{got}, want #{want}" if got != want
end

def fit(got, want) # want, where got is like it: 7, a number in 0..7, a text, a list of these
  return want.is_a?(Array) && got.size == want.size ? got.zip(want).map { |pair| fit(*pair) } : got if got.is_a?(Array)
  least, most = want.to_s.split('..').map(&:to_i)
  most && got.between?(least, most) ? want : got.to_s
end

def play(client, file)
  path = "#{LUA}/#{file['script']}.lua"
  for group in file['groups']
    lead, prelude = group['argv'], group['setting']['prelude']
    call = prelude.empty? ? script(client, path) : ->(keys, args) { client.eval(prelude + File.binread(path), keys: keys, argv: args) }
    for test in group['tests']
      keys = test['keys'].each_index.map { |i| "#{NAME}:#{i}" }
      named = { 'each' => keys, 'none' => [], 'again' => keys + keys.first(1) }[group['setting']['keys']]
      keys.zip(test['keys']) do |key, before|
        client.set(key, [before['hex']].pack('H*')) if before['kind'] == 'string'
        client.rpush(key, 'a') if before['kind'] == 'list'
      end
      for step in test['steps']
        keys.zip(step['expire']) do |key, expire|
          expire == 'none' ? client.persist(key) : client.pexpire(key, expire.to_i) unless expire.empty?
        end
        begin
          answer = fit(call.(named, lead + step['argv']), step['reply'])
        rescue Redis::CommandError => e
          answer = !step['error'].empty? && e.message.start_with?(step['error']) ? step['error'] : e.message
        end
        states = keys.zip(step['state']).map do |key, want|
          state = client.type(key) == 'string' ? client.get(key).unpack1('H*') : ''
          state.match?(/\A#{want}\z/) ? want : state
        end
        got = [answer, states, fit(keys.map { |key| client.pttl(key) }, step['ttl_ms'])]
        want = [step['error'].empty? ? step['reply'] : step['error'], step['state'], step['ttl_ms']]
        break if got != want
      end
      check("#{file['script']} #{test['id']}", got, want)
      client.del(*keys)
    end
    for stream in group['streams']
      sha256, now_ns = Digest::SHA256.new, stream['now_ns'].to_i
      stream['calls'].times do
        reply = call.([NAME], [*lead, stream['cost'], now_ns])
        sha256 << "#{reply.join(' ')}\n"
        now_ns += reply[2]
      end
      check("#{file['script']} #{stream['id']}", sha256.hexdigest, stream['sha256'])
      client.del(NAME)
    end
  end
end

exit reservations || true if ARGV == ['-']
for options in Redis::VERSION.to_i < 5 ? [{}] : [{ protocol: 2 }, { protocol: 3 }] # RESP3 since 5.0
  client = Redis.new(url: ENV.fetch('REDIS_URL'), **options)
  check('64 bits', client.incrby(NAME, 2**63 - 1), 2**63 - 1)
  client.del(NAME)
  (ARGV.empty? ? Dir["#{__dir__}/../../*_v*.json"] : ARGV).each { |path| play(client, JSON.parse(File.read(path))) }
end
puts "#{RESULTS.count(true)} passed, #{RESULTS.count(false)} failed"
exit RESULTS.all?
