#!/bin/sh
# Plays the vectors, or the files given, by each client that is installed, and names the others:
#   vectors/clients/run.sh [file ...]
# The server is the one at REDIS_URL, or one of its own. With REQUIRE_SERVERS=1 a missing
# client is a failure. CLIENT names one, as in python/redis_py.py, and DO=example has it run
# its example. With - for the files it makes the reservations that its input says.
set -eu
clients=$(dirname "$0")
passed=0 failed=0 skipped=0

start() { # a server of its own
  for tool in redis-server redis-cli; do
    command -v $tool >/dev/null || { echo "run.sh: $tool is not on PATH, and REDIS_URL names no server"; exit 1; }
  done
  dir=$(mktemp -d)
  trap 'rm -r "$dir"' EXIT
  trap 'exit 1' HUP INT PIPE TERM # some shells run EXIT's only so
  port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 10000))
  redis-server --port $port --bind 127.0.0.1 --dir "$dir" --save '' --appendonly no >"$dir/log" &
  server=$!
  trap 'kill $server 2>/dev/null || :; wait $server || :; rm -r "$dir"' EXIT
  until grep -qs 'Ready to accept connections' "$dir/log"; do
    # Another server may have the port; this one has then exited.
    kill -0 $server || { cat "$dir/log"; exit 1; }
    sleep 0.1
  done
  export REDIS_URL=redis://127.0.0.1:$port
}

play() { # file needs language probe: plays files by a client, if the probe succeeds
  [ "${CLIENT:-$1}" = "$1" ] || return 0
  file=$clients/$1 needs=$2 language=$3 probe=$4
  shift 4
  if ! (cd "${file%/*}" && eval "$probe") >/dev/null 2>&1; then
    echo "${file##*/}: skipped, needs $needs"
    skipped=$((skipped + 1))
    return
  fi
  if [ "$server" ]; then
    redis-cli -u "$REDIS_URL" SCRIPT FLUSH >/dev/null # so that each has to load the scripts
  fi
  echo "${file##*/}:"
  if $language "${file%/*}/${DO:-play}_${file##*/}" "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
}

server=''
[ "${REDIS_URL:-}" ] || start
# Another python3 may come before the system's, without its packages.
python=python3
$python -c 'import redis' 2>/dev/null || python=/usr/bin/python3
npm="npm ci --prefix vectors/clients/javascript"
shell=bash # the runner's; the file to copy takes any
[ "${DO:-}" != example ] || shell=sh

play python/redis_py.py 'redis-py' $python "$python -c 'import redis'" "$@"
play javascript/node_redis.js "Node and: $npm" node "node --input-type=module -e 'import \"redis\"'" "$@"
play javascript/ioredis.js "Node and: $npm" node "node --input-type=module -e 'import \"ioredis\"'" "$@"
play ruby/redis_rb.rb 'the gem redis' ruby "ruby -r redis -e ''" "$@"
play php/phpredis.php 'phpredis' php "php -r 'new Redis();'" "$@"
play perl/redis_pm.pl 'Redis.pm' perl "perl -MRedis -e ''" "$@"
play shell/redis_cli.sh 'bash, redis-cli, jq and sha1sum' $shell 'type bash redis-cli jq sha1sum' "$@"

echo "$passed clients passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && { [ "$skipped" -eq 0 ] || [ "${REQUIRE_SERVERS:-}" != 1 ]; }
