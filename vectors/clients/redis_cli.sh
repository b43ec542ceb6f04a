#!/bin/sh
# Plays the vectors on the server at REDIS_URL: sh redis_cli.sh [file ...];
# needs redis-cli 6 or later, jq, od, sha1sum, sha256sum and mktemp.
set -euf

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

vectors=$(dirname "$0")/..
key=tatami:$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
passed=0 failed=0
pipes=$(mktemp -d)
trap 'rm -r "$pipes"' EXIT
mkfifo "$pipes/calls" "$pipes/answers"

# A redis-cli for each call would take minutes, so one reads all calls.
session() { # does what redis-cli does with these arguments
  if [ "$1" = -x ]; then
    $cli "$@"
    return
  fi
  line=''
  for word; do
    case $word in
      '' | *[!0-9A-Za-z_:-]*) word=$(printf %s "$word" | jq -Rs .) ;; # in quotes
    esac
    line="$line $word"
  done
  printf '%s\nECHO end\n' "$line" >&3
  while IFS= read -r word <&4 && [ "$word" != end ]; do
    printf '%s\n' "$word"
  done
}

check() { # name got want
  if [ "$2" = "$3" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "$1: got $2, want $3"
  fi
}

begin() { # kind hex ttl_ms: what the key holds
  case $1 in
    string) printf 'SET %s "%s"\n' "$key" "$(echo "$2" | sed 's/../\\x&/g')" | $cli >/dev/null ;;
    list) session RPUSH "$key" a >/dev/null ;;
  esac
  [ -z "$3" ] || session PEXPIRE "$key" "$3" >/dev/null
  got='' want=''
}

# A shell cannot hold every byte, so the server gives the ttl, and the state in hex.
look='local state = redis.pcall("GET", KEYS[1])
  state = type(state) == "string" and state or ""
  state = string.gsub(state, ".", function(c) return string.format("%02x", string.byte(c)) end)
  return redis.call("PTTL", KEYS[1]) .. " " .. state'

join() {
  reply=$*
}

step() { # error reply state least most argument ...
  [ "$got" = "$want" ] || return 0 # an earlier step was wrong
  least=${4:--2} most=${5:--1} # PTTL without a key, without an expiry
  want="$1|$2|$3|$least..$most"
  shift 5
  # shellcheck disable=SC2046 # a word for each line
  join $(allow "$key" "$@")
  case $reply in [A-Z]*) reply="${reply%% *}|" ;; *) reply="|$reply" ;; esac
  held=$(session EVALSHA "$look_sha" 1 "$key")
  ttl=${held%% *}
  if [ "$ttl" -ge "$least" ] && [ "$ttl" -le "$most" ]; then
    ttl=$least..$most
  fi
  got="$reply|${held#* }|$ttl"
}

end() { # name
  check "$1" "$got" "$want"
  session DEL "$key" >/dev/null
}

stream() { # name sha256 calls cost now_ns amount period_ns burst|mode
  name=$1 want=$2 left=$3 cost=$4 now_ns=$5
  shift 5
  allow "$key" "$@" 0 "$now_ns" >/dev/null # loads the script, if need be
  got=$(while [ "$left" -gt 0 ]; do
    echo "EVALSHA $sha 1 $key $* $cost $now_ns" >&3
    read -r status <&4
    case $status in [A-Z]*) break ;; esac # an error is one line
    read -r remaining <&4
    read -r retry_after_ns <&4
    read -r reset_after_ns <&4
    echo "$status $remaining $retry_after_ns $reset_after_ns"
    now_ns=$((now_ns + retry_after_ns)) left=$((left - 1))
  done | sha256sum)
  check "$name" "${got%% *}" "$want"
  session DEL "$key" >/dev/null
}

# The vectors as calls of these functions.
# shellcheck disable=SC2016
program='.script as $script | .groups[] | .argv as $lead |
  (.tests[] | @sh "begin \(.key.kind) \(.key.hex) \(.key.ttl_ms)",
    (.steps[] | @sh "step \(.error) \(.reply | join(" ")) \(.state) \(.ttl_ms) \($lead + .argv)"),
    @sh "end \("\($script) \(.id)")"),
  (.streams[] | @sh "stream \("\($script) \(.id)") \(.sha256) \(.calls) \(.cost) \(.now_ns) \($lead)")'

[ $# -gt 0 ] || { set +f; set -- "$vectors"/*_v*.json; set -f; }
redis=session
for protocol in '' -3; do
  cli="redis-cli $protocol --no-auth-warning -u $REDIS_URL"
  $cli <"$pipes/calls" >"$pipes/answers" &
  exec 3>"$pipes/calls" 4<"$pipes/answers"
  check '64 bits' "$(session INCRBY "$key" 9223372036854775807)" 9223372036854775807
  session DEL "$key" >/dev/null
  look_sha=$(session SCRIPT LOAD "$look")
  for path; do
    script=$vectors/../lua/$(jq -r .script "$path").lua
    sha=$(sha1sum "$script")
    sha=${sha%% *}
    check "$script SHA1" "$sha" "$(jq -r .sha1 "$path")"
    play=$(jq -r "$program" "$path")
    eval "$play"
  done
  exec 3>&- 4<&-
  wait
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
