-- Runs scripts in a plain Lua, without a server.
--
-- The input begins with the number of scripts and, for each, a line with its bytes and
-- the bytes. A call is a line of fields with a space between, texts in hexadecimal with =
-- before each: TIME's seconds and microseconds, the command that the server refuses or -,
-- how many keys are named, what the key k holds or - for nothing, and the arguments.
--
-- Every script makes every call. An outcome is the reply's numbers, or "error" with its
-- text, or "raised" with the interpreter's own error; then what is set, in hexadecimal,
-- and KEEPTTL or EX with its seconds. That of the first script is a line. That of another
-- which differs is a line too, "!", its number and the outcome; it then plays no more.

local load = loadstring or load

local scripts = {}
for i = 1, io.read('*n', '*l') do
  local bytes = io.read('*n', '*l')
  scripts[i] = assert(load(io.read(bytes), '=script'))
end

local time, refuses, state, set, expiry

local function text(hex)
  return (string.gsub(string.sub(hex, 2), '%x%x', function(byte) return string.char(tonumber(byte, 16)) end))
end

local function hex(bytes)
  return (string.gsub(bytes, '.', function(c) return string.format('%02x', string.byte(c)) end))
end

redis = {}

function redis.error_reply(message)
  return {err = message}
end

function redis.pcall(...)
  local words = {...}
  for i = 1, select('#', ...) do
    assert(type(words[i]) == 'string', 'a command takes strings')
  end
  if words[1] == refuses then
    return {err = 'refused ' .. refuses}
  elseif words[1] == 'TIME' then
    return time
  elseif words[1] == 'GET' and words[2] == 'k' then
    return state
  end
  assert(words[1] == 'SET' and words[2] == 'k', 'an unknown command')
  assert(not set, 'two writes')
  if words[4] == 'EX' and #words == 5 then
    assert(string.find(words[5], '^[1-9]%d*$'), 'EX takes a number above 0')
    expiry = ' EX ' .. words[5]
  else
    assert(words[4] == 'KEEPTTL' and #words == 4 and state, 'SET has EX, or KEEPTTL on a key that is there')
    expiry = ' KEEPTTL'
  end
  set = words[3]
  return {ok = 'OK'}
end

-- A reply holds whole numbers: the server cuts a fraction off, as %d does in Lua 5.1.
local function whole(number)
  if number < 0 then
    return math.ceil(number) + 0.0 -- no minus before 0
  end
  return math.floor(number) + 0.0
end

-- play makes the call by the nth script.
local function play(n, keys, arguments)
  KEYS, ARGV = {}, {}
  for i = 1, keys do
    KEYS[i] = 'k'
  end
  for i = 1, #arguments do
    ARGV[i] = arguments[i]
  end
  set, expiry = nil, ''
  local ran, reply = pcall(scripts[n])
  if not ran then
    return 'raised ' .. string.gsub(reply, '^script:%d+: ', '')
  elseif reply.err then
    reply = 'error ' .. reply.err
  else
    assert(#reply == 4, 'a reply has four numbers')
    reply = string.format('%.0f %.0f %.0f %.0f', whole(reply[1]), whole(reply[2]), whole(reply[3]), whole(reply[4]))
  end
  if set then
    return reply .. ' ' .. hex(set) .. expiry
  end
  return reply
end

local differs = {}
for line in io.lines() do
  local seconds, micros, keys, held, rest
  seconds, micros, refuses, keys, held, rest = string.match(line, '^(%d+) (%d+) (%S+) (%d+) (%S+)(.*)$')
  time, state = {seconds, micros}, held ~= '-' and text(held)
  local arguments = {}
  for argument in string.gmatch(rest, '=%x*') do
    arguments[#arguments + 1] = text(argument)
  end
  local outcome = play(1, keys, arguments)
  io.write(outcome, '\n')
  for n = 2, #scripts do
    if not differs[n] then
      local other = play(n, keys, arguments)
      if other ~= outcome then
        differs[n] = true
        io.write('! ', n - 1, ' ', other, '\n')
      end
    end
  end
end
