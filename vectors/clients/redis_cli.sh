#!/bin/sh
# Plays the vectors on the server at REDIS_URL: sh redis_cli.sh [file ...];
# needs redis-cli 6 or later, jq, od, sha1sum, sha256sum, paste and mktemp.
set -eu

# sample
# allow key amount period_ns burst|mode cost [now_ns]
# prints status, remaining, retry_after_ns and reset_after_ns, or the error.
# $redis is redis-cli with its options, $script a path, $sha the file's SHA1.
allow() {
  answer=$($redis EVALSHA "$sha" 1 "$@")
  case $answer in
    NOSCRIPT*)
      $redis -x SCRIPT LOAD <"$script" >/dev/null
      answer=$($redis EVALSHA "$sha" 1 "$@") ;;
  esac
  echo "$answer"
}
# end

redis=session vectors=$(dirname "$0")/.. key=tatami:$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
passed=0 failed=0 got='' want='' pipes=$(mktemp -d)
trap 'rm -r "$pipes"' EXIT
mkfifo "$pipes/calls" "$pipes/answers"

# A redis-cli for each call would take minutes, so one reads all calls, its words in its own quotes.
session() {
  [ "$1" != -x ] || { $cli "$@"; return; }
  printf '%s\nECHO end\n' "$*" >&3
  while IFS= read -r line <&4 && [ "$line" != end ]; do printf '%s\n' "$line"; done
}

check() { # name got want
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "$1: got $2, want $3"; fi
  session DEL "$key" >/dev/null
  got='' want=''
}

# A shell cannot hold every byte, so the server gives the state in hex, and the ttl.
look='local state, hex = redis.pcall("GET", KEYS[1]), function(c) return string.format("%02x", string.byte(c)) end
  return string.gsub(type(state) == "string" and state or "", ".", hex) .. "|" .. redis.call("PTTL", KEYS[1])'

step() { # answer state least most argument ...
  [ "$got" = "$want" ] || return 0 # an earlier step was wrong
  want="$1|$2|$3..$4" least=$3 most=$4
  shift 4
  answer=$(allow "$key" "$@" | paste -sd ' ' -)
  case $answer in [A-Z]*) answer=${answer%% *} ;; esac
  held=$(session EVALSHA "$look_sha" 1 "$key")
  ttl=${held#*|}
  [ "$ttl" -lt "$least" ] || [ "$ttl" -gt "$most" ] || ttl=$least..$most
  got="$answer|${held%|*}|$ttl"
}

stream() { # calls cost now_ns amount period_ns burst|mode: prints the SHA256 of the replies
  left=$1 cost=$2 now_ns=$3
  shift 3
  allow "$key" "$@" 0 "$now_ns" >/dev/null # loads the script, if need be
  while [ "$left" -gt 0 ]; do
    echo "EVALSHA $sha 1 $key $* $cost $now_ns" >&3
    read -r status <&4
    case $status in [A-Z]*) break ;; esac # an error is one line
    { read -r remaining && read -r retry_after_ns && read -r reset_after_ns; } <&4
    echo "$status $remaining $retry_after_ns $reset_after_ns"
    now_ns=$((now_ns + retry_after_ns)) left=$((left - 1))
  done | sha256sum | cut -d ' ' -f 1
}

# The vectors as calls of these functions; without a key PTTL is -2, without an expiry -1.
# shellcheck disable=SC2016
program='.script as $script | .groups[] | (.argv | map(tojson)) as $lead |
  (.tests[] | (.key | (select(.kind == "string") | .hex | gsub("(?<x>..)"; "\\x\(.x)") | @sh "SET $key \("\"\(.)\"")"),
      (select(.kind == "list") | "RPUSH $key a"), (select(.ttl_ms != "") | "PEXPIRE $key \(.ttl_ms)") |
      "session \(.) >/dev/null"),
    (.steps[] | (if .ttl_ms[0] == "" then ["-2", "-1"] else .ttl_ms end) as $range |
      @sh "step \(.error + (.reply | join(" "))) \(.state) \($range) \($lead + (.argv | map(tojson)))"),
    @sh "check \("\($script) \(.id)") \"$got\" \"$want\""),
  (.streams[] | @sh "check \("\($script) \(.id)") \"$(stream \(.calls) \(.cost) \(.now_ns) \($lead))\" \(.sha256)")'

[ $# -gt 0 ] || set -- "$vectors"/*_v*.json
for protocol in '' -3; do
  cli="redis-cli $protocol --no-auth-warning -u $REDIS_URL"
  $cli <"$pipes/calls" >"$pipes/answers" &
  exec 3>"$pipes/calls" 4<"$pipes/answers"
  check '64 bits' "$(session INCRBY "$key" 9223372036854775807)" 9223372036854775807
  look_sha=$(printf %s "$look" | $cli -x SCRIPT LOAD)
  for path; do
    script=$vectors/../lua/$(jq -r .script "$path").lua
    sha=$(sha1sum <"$script" | cut -d ' ' -f 1)
    eval "$(jq -r "$program" "$path")"
  done
  exec 3>&- 4<&- && wait
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
