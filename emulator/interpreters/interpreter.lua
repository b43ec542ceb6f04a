-- Runs scripts in a plain Lua, without a server.
--
-- The input begins with the number of preludes and the number of scripts and, for each of
-- them, a line with its bytes and the bytes. A call is a line of fields with a space between,
-- texts in hexadecimal with = before each: TIME's seconds and microseconds, the prelude that
-- stands before the script, the command that the server refuses or -, how many keys are
-- named, for each its name and what it holds or - for nothing, and the arguments.
--
-- Every script makes every call. An outcome is the reply, its tables in brackets, or "error"
-- with its text, or "raised" with the interpreter's own error; then for each key that is set
-- its number, a colon, the bytes in hexadecimal, and KEEPTTL or EX with its seconds. That of
-- the first script is a line. That of another which differs is a line too, "!", its number
-- and the outcome; it then plays no more.

local load = loadstring or load
unpack = unpack or table.unpack -- Redis has it by this name

local function texts(n)
  local all = {}
  for i = 1, n do
    all[i] = io.read((io.read('*n', '*l')))
  end
  return all
end

local many_preludes, many_scripts = io.read('*n', '*n', '*l')
local preludes, scripts = texts(many_preludes), texts(many_scripts)
local loaded = {} -- by prelude and script
for i, prelude in ipairs(preludes) do
  loaded[i] = {}
  for n, script in ipairs(scripts) do
    loaded[i][n] = assert(load(prelude .. script, '=script'))
  end
end

local time, refuses, names, held, set -- the last two by name

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
  end
  local key = words[2]
  assert(held[key] ~= nil, 'a key that is not named')
  if words[1] == 'GET' then
    return held[key]
  end
  assert(words[1] == 'SET', 'an unknown command')
  assert(not set[key], 'two writes')
  if words[4] == 'EX' and #words == 5 then
    assert(string.find(words[5], '^[1-9]%d*$'), 'EX takes a number above 0')
  else
    assert(words[4] == 'KEEPTTL' and #words == 4 and held[key], 'SET has EX, or KEEPTTL on a key that is there')
  end
  set[key] = hex(words[3]) .. ' ' .. table.concat(words, ' ', 4)
  return {ok = 'OK'}
end

-- show is a part of a reply. Redis cuts a fraction off, as '%d' does in its Lua; that of Lua
-- 5.4 raises an error.
local function show(value)
  if type(value) == 'number' then
    return string.format('%d', value)
  elseif type(value) == 'table' then
    local parts = {}
    for i = 1, #value do
      parts[i] = show(value[i])
    end
    return '[' .. table.concat(parts, ' ') .. ']'
  end
  assert(type(value) == 'string', 'a reply has numbers, texts and tables')
  return value
end

-- answer is the reply, or its error.
local function answer(script)
  local reply = script()
  if reply.err then
    return 'error ' .. reply.err
  end
  return string.sub(show(reply), 2, -2)
end

local function play(script, arguments)
  KEYS, ARGV, set = {}, {}, {}
  for i = 1, #names do
    KEYS[i] = names[i]
  end
  for i = 1, #arguments do
    ARGV[i] = arguments[i]
  end
  local ran, outcome = pcall(answer, script)
  if not ran then
    return 'raised ' .. string.gsub(outcome, '^script:%d+: ', '')
  end
  for i = 1, #names do
    if set[names[i]] then
      outcome = outcome .. ' ' .. i .. ':' .. set[names[i]]
    end
  end
  return outcome
end

local differs = {}
for line in io.lines() do
  local seconds, micros, prelude, keys, rest
  seconds, micros, prelude, refuses, keys, rest = string.match(line, '^(%d+) (%d+) (%d+) (%S+) (%d+)(.*)$')
  time, names, held = {seconds, micros}, {}, {}
  for i = 1, keys do
    local name, state
    name, state, rest = string.match(rest, '^ (%S+) (%S+)(.*)$')
    names[i] = text(name)
    held[names[i]] = state ~= '-' and text(state)
  end
  local arguments = {}
  for argument in string.gmatch(rest, '=%x*') do
    arguments[#arguments + 1] = text(argument)
  end
  local all = loaded[tonumber(prelude)]
  local outcome = play(all[1], arguments)
  io.write(outcome, '\n')
  for n = 2, #all do
    if not differs[n] then
      local other = play(all[n], arguments)
      if other ~= outcome then
        differs[n] = true
        io.write('! ', n - 1, ' ', other, '\n')
      end
    end
  end
end
