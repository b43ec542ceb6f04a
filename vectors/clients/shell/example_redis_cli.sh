#!/bin/sh
set -eu
. vectors/clients/shell/redis_cli.sh

redis="redis-cli -u $REDIS_URL"
script=lua/gcra_v2.lua sha=$(sha1sum <lua/gcra_v2.lua | cut -d ' ' -f 1)
if allow 'rl:{42}' 300 60000000000 60 1 >/dev/null; then echo admitted; fi

# A call of a language model, at most 60 a minute, and 1,000,000 tokens a day.
limits=lua/limits_v1.lua limits_sha=$(sha1sum <lua/limits_v1.lua | cut -d ' ' -f 1)
calls='gcra 60 60000000000 60 calls'
tokens='gcra 1000000 86400000000000 100000 tokens'
if reserve 42 "$calls" 1 42 "$tokens" 4000; then
  tokens_used=500 # as the model's answer says
  settle 1 "$tokens_used"
else
  echo "try again in $retry_after_ns ns"
fi
