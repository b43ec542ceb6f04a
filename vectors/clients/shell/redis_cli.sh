#!/usr/bin/env bash
# Plays the vectors on the server at REDIS_URL: bash redis_cli.sh [file ...]; needs bash 4, redis-cli 6, jq, sha1sum.
set -eu
# sample
# Prints status, remaining, retry_after_ns and reset_after_ns, or the error.
# $redis is redis-cli with its options but -e, $script a path, $sha the file's SHA1.
allow() { # key amount period_ns burst|mode cost [now_ns]
  answer=$($redis --raw EVALSHA "$sha" 1 "$@") # last, so it overrides --no-raw and --json
  if [ "${answer%% *}" = NOSCRIPT ]; then
    $redis -x SCRIPT LOAD <"$script" >/dev/null
    answer=$($redis --raw EVALSHA "$sha" 1 "$@")
  fi
  printf '%s\n' "$answer"
  [ "${answer%%[!0-9]*}" = 1 ] # so that if allow ... runs what is admitted; an error begins with a letter
}
# end
vectors=$(dirname "$0")/../.. key=tatami:$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n') passed=0 failed=0
# A redis-cli for each call would take minutes, so one reads all calls, its words in its own quotes.
redis=session cli="redis-cli --no-auth-warning -u $REDIS_URL"
$cli PING >/dev/null # fails where there is no server; the next waits for one
coproc $cli -d ' '; exec 3>&"${COPROC[1]}" 4<&"${COPROC[0]}" # all of a reply on one line
session() {
  [ "$1" != -x ] || { $cli "$@"; return; }
  [ "$1" != --raw ] || shift # it is raw
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
fit() { # numbers ranges: fitted is each range, where the number lies in it: 7, or 0..7
  local i got=($1) want=($2)
  for i in "${!got[@]}"; do
    [ "${got[i]}" -lt "${want[i]%..*}" ] || [ "${got[i]}" -gt "${want[i]#*..}" ] || got[i]=${want[i]}
  done
  fitted=${got[*]}
}
setting() { # keys prelude: how call calls
  keys=$1 sha=$(sha1sum <"$script" | cut -d ' ' -f 1)
  [ "$1$2" = 1 ] || sha=$({ printf %s "$2"; cat "$script"; } | $cli -x SCRIPT LOAD)
}
call() { # argument ...
  if [ "$keys" = 1 ]; then allow "$key" "$@"; else session EVALSHA "$sha" "$keys" $(yes "$key" | head -n "$keys") "$@"; fi
}
step() { # expire answer state ttl argument ...
  case $1 in none) session PERSIST "$key" ;; ?*) session PEXPIRE "$key" "$1" ;; esac >/dev/null
  want="$2|$3|$4" answer=$(call "${@:5}") held=$(session EVAL "\"$look\"" 1 "$key")
  case $answer/$2 in [A-Z]*/[A-Z]*) fitted=${answer/#"$2"*/"$2"} ;; *[A-Z]*) fitted=$answer ;; *) fit "$answer" "$2" ;; esac
  answer=$fitted state=${held%|*} && fit "${held#*|}" "$4"
  [[ $state != ${3//./?} ]] || state=$3
  got="$answer|$state|$fitted" && [ "$got" = "$want" ]
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
# The vectors as calls of these functions.
program='.groups[] | (.argv | map(tojson)) as $lead | (.setting | @sh "setting \(.keys) \(.prelude)"), (.tests[] |
    (.key | (select(.kind == "string") | .hex | gsub("(?<x>..)"; "\\x\(.x)") | @sh "SET $key \("\"\(.)\"")"),
      (select(.kind == "list") | "RPUSH $key a") | "session \(.) >/dev/null"),
    ([.steps[] | @sh "step \(.expire) \(.error + (.reply | join(" "))) \(.state) \(.ttl_ms) \($lead + (.argv | map(tojson)))"] |
      join(" && ") + " || :"), "check \"$name \(.id)\" \"$got\" \"$want\""),
  (.streams[] | @sh "check \"$name \(.id)\" \"$(stream \(.calls) \(.cost) \(.now_ns) \($lead))\" \(.sha256)")'
[ $# -gt 0 ] || set -- "$vectors"/*_v*.json
for protocol in 2 3; do
  session HELLO "$protocol" >/dev/null
  check '64 bits' "$(session INCRBY "$key" 9223372036854775807)" 9223372036854775807
  for path; do
    name=$(jq -r .script "$path") script=$vectors/../lua/$name.lua
    eval "$(jq -r "$program" "$path")"
  done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
