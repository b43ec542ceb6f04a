#!/usr/bin/env bash
# Plays the vectors on the server at REDIS_URL: bash redis_cli.sh [file ...]; needs bash 4, redis-cli 6, jq, sha1sum.
set -eu
# sample
# Prints status, remaining, retry_after_ns and reset_after_ns, or the error.
# $redis is redis-cli with its options, $script a path, $sha the file's SHA1.
allow() { # key amount period_ns burst|mode cost [now_ns]
  answer=$($redis EVALSHA "$sha" 1 "$@")
  if [ "${answer%% *}" = NOSCRIPT ]; then
    $redis -x SCRIPT LOAD <"$script" >/dev/null
    answer=$($redis EVALSHA "$sha" 1 "$@")
  fi
  echo "$answer"
  [ "${answer%%[!0-9]*}" = 1 ] # so that if allow ... runs what is admitted
}
# end
vectors=$(dirname "$0")/../.. key=tatami:$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n') passed=0 failed=0
# A redis-cli for each call would take minutes, so one reads all calls, its words in its own quotes.
redis=session cli="redis-cli --no-auth-warning -u $REDIS_URL"
$cli PING >/dev/null # fails where there is no server; the next waits for one
coproc $cli -d ' '; exec 3>&"${COPROC[1]}" 4<&"${COPROC[0]}" # all of a reply on one line
session() {
  [ "$1" != -x ] || { $cli "$@"; return; }
  printf '%s\n' "$*" >&3
  while read -r line <&4 && [ -z "$line" ]; do :; done # an error leaves an empty line
  echo "$line"
}
check() { # name got want
  if [ "$2" = "$3" ]; then ((++passed)); else ((++failed)) && echo "$1: got $2, want $3"; fi
  session DEL "$key" >/dev/null
}
# A shell cannot hold every byte, so the server gives the state in hex, and the ttl.
look="local s = redis.pcall('GET', KEYS[1]); return string.gsub(type(s) == 'string' and s or '', '.', \
function(c) return string.format('%02x', string.byte(c)) end) .. '|' .. redis.call('PTTL', KEYS[1])"
step() { # answer state least most argument ...
  want="$1|$2|$3..$4" answer=$(allow "$key" "${@:5}") held=$(session EVAL "\"$look\"" 1 "$key")
  case $answer in [A-Z]*) answer=${answer%% *} ;; esac # an error's first word
  ttl=${held#*|} && [ "$ttl" -ge "$3" ] && [ "$ttl" -le "$4" ] && ttl=$3..$4
  got="$answer|${held%|*}|$ttl" && [ "$got" = "$want" ]
}
stream() { # calls cost now_ns amount period_ns burst|mode: prints the SHA256 of the replies
  now_ns=$3 && allow "$key" "${@:4}" 0 "$3" >/dev/null # loads the script, if need be
  for ((call = 0; call < $1; call++)); do # without a process for each
    echo "EVALSHA $sha 1 $key ${*:4} $2 $now_ns" >&3
    read -ra reply <&4
    echo "${reply[*]}"
    now_ns=$((now_ns + reply[2]))
  done | sha256sum | cut -d ' ' -f 1
}
# The vectors as calls of these functions; without a key PTTL is -2, without an expiry -1.
program='.groups[] | (.argv | map(tojson)) as $lead | (.tests[] |
    (.key | (select(.kind == "string") | .hex | gsub("(?<x>..)"; "\\x\(.x)") | @sh "SET $key \("\"\(.)\"")"),
      (select(.kind == "list") | "RPUSH $key a"), (select(.ttl_ms != "") | "PEXPIRE $key \(.ttl_ms)") |
      "session \(.) >/dev/null"),
    ([.steps[] | (if .ttl_ms[0] == "" then ["-2", "-1"] else .ttl_ms end) as $range |
      @sh "step \(.error + (.reply | join(" "))) \(.state) \($range) \($lead + (.argv | map(tojson)))"] |
      join(" && ") + " || :"), "check \"$name \(.id)\" \"$got\" \"$want\""),
  (.streams[] | @sh "check \"$name \(.id)\" \"$(stream \(.calls) \(.cost) \(.now_ns) \($lead))\" \(.sha256)")'
[ $# -gt 0 ] || set -- "$vectors"/*_v*.json
for protocol in 2 3; do
  session HELLO "$protocol" >/dev/null
  check '64 bits' "$(session INCRBY "$key" 9223372036854775807)" 9223372036854775807
  for path; do
    name=$(jq -r .script "$path") script=$vectors/../lua/$name.lua
    sha=$(sha1sum <"$script" | cut -d ' ' -f 1)
    eval "$(jq -r "$program" "$path")"
  done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
