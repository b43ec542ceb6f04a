-- Runs scripts in a plain Lua, without a server.
--
--   lua interpreter.lua SCRIPT... < calls > outcomes
--
-- A call is a line of fields with a space between: which SCRIPT, TIME's seconds and
-- microseconds, what the key k holds in hexadecimal or - for nothing, and the
-- arguments, with = before each. An outcome is a line too: the reply's numbers or
-- "error" with its text, then what is set, in hexadecimal, and KEEPTTL or EX with its
-- seconds.

local scripts = {}
for i, path in ipairs(arg) do
  scripts[i] = assert(loadfile(path))
end

local time, state, written

redis = {}

function redis.error_reply(text)
  return {err = text}
end

function redis.pcall(...)
  local words = {...}
  for i = 1, select('#', ...) do
    assert(type(words[i]) == 'string', 'a command takes strings')
  end
  if words[1] == 'TIME' then
    return time
  elseif words[1] == 'GET' and words[2] == 'k' then
    return state
  end
  assert(words[1] == 'SET' and words[2] == 'k', 'an unknown command')
  local expiry = ' KEEPTTL'
  if words[4] == 'EX' and #words == 5 then
    assert(string.find(words[5], '^[1-9]%d*$'), 'EX takes a number above 0')
    expiry = ' EX ' .. words[5]
  else
    assert(words[4] == 'KEEPTTL' and #words == 4 and state, 'SET has EX, or KEEPTTL on a key that is there')
  end
  assert(not written, 'two writes')
  local hex = string.gsub(words[3], '.', function(c) return string.format('%02x', string.byte(c)) end)
  written = ' ' .. hex .. expiry
  return {ok = 'OK'}
end

for line in io.lines() do
  local script, seconds, micros, hex, rest = string.match(line, '^(%d+) (%d+) (%d+) (%S+)(.*)$')
  time, state, written = {seconds, micros}, false, nil
  if hex ~= '-' then
    state = string.gsub(string.sub(hex, 2), '%x%x', function(byte) return string.char(tonumber(byte, 16)) end)
  end
  KEYS, ARGV = {'k'}, {}
  for argument in string.gmatch(rest, ' =(%S*)') do
    ARGV[#ARGV + 1] = argument
  end
  local reply = scripts[tonumber(script)]()
  if reply.err then
    reply = 'error ' .. reply.err
  else
    reply = string.format('%d %d %d %d', reply[1], reply[2], reply[3], reply[4])
  end
  io.write(reply, written or '', '\n')
end
