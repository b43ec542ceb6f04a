#!/usr/bin/env bash
# Plays the vectors on the server at REDIS_URL: bash play_redis_cli.sh [file ...]; needs bash 4, redis-cli 6, jq, sha1sum.
# With - for the files it makes the reservations that its input says.
set -euf
here=$(cd "$(dirname "$0")" && pwd) && vectors=$here/../.. lua=$here/../../../lua
cli="redis-cli --no-auth-warning -u $REDIS_URL" passed=0 failed=0
name=tatami:$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
dir=$(mktemp -d) && trap 'rm -r "$dir"' EXIT

reservations() { # reserve,key,kind,amount,period_ns,burst,name,cost,key,... or settle,used,...
  . "$here/redis_cli.sh"
  redis=$cli limits=$lua/limits_v1.lua limits_sha=$(sha1sum <"$lua/limits_v1.lua" | cut -d ' ' -f 1)
  while IFS=, read -ra words; do
    if [ "${words[0]}" = reserve ]; then
      asks=()
      for ((i = 1; i < ${#words[@]}; i += 7)); do
        asks+=("${words[i]}" "${words[*]:i+1:3} ${words[i+4]:--} ${words[i+5]}" "${words[i+6]}")
      done
      reserve "${asks[@]}" >"$dir/said" 2>&1 || :
      answer=${answer//$'\n'/|} && said="$status|$retry_after_ns|$binds|${answer#*|*|}"
      [ "$reservation" != "${reservation%$'\n'}" ] && said+='|' || : # a last receipt that is empty
    else
      settle "${words[@]:1}" >"$dir/said" 2>&1 && said=settled || :
    fi
    [ ! -s "$dir/said" ] || said="error $(cat "$dir/said")"
    echo "$said"
  done
}

check() { # label got want
  if [ "$2" = "$3" ]; then ((++passed)); else ((++failed)) && echo "$1: got $2, want $3"; fi
}
# A redis-cli for each call would take minutes. So one reads all calls of a file, its words in its own quotes, and
# answers a line to each, its values with a | between. An error leaves an empty line after it.
# look answers of each key the state in hex, as a shell cannot hold every byte, and the ttl.
look="local seen = {} for i, key in ipairs(KEYS) do local s = redis.pcall('GET', key) \
seen[i] = string.gsub(type(s) == 'string' and s or '', '.', function(c) return string.format('%02x', string.byte(c)) end) \
.. ',' .. redis.call('PTTL', key) end return table.concat(seen, ' ')"
keys='def keys: [range(.keys | length) | "\($name):\(.)"];'
# What is asked: for each test what its keys hold, for each step @, the call, and a look.
commands=$keys'.groups[] | .argv as $lead | .setting as $setting | .tests[] | keys as $keys |
  (.keys | to_entries[] | .value.kind as $kind |
    if $kind == "string" then "SET \($keys[.key]) \"\(.value.hex | gsub("(?<x>..)"; "\\x\(.x)"))\""
    elif $kind == "list" then "RPUSH \($keys[.key]) a" else empty end),
  ((if $setting.keys == "none" then [] elif $setting.keys == "again" then $keys + $keys[:1] else $keys end) as $named |
    .steps[] | (.expire | to_entries[] | select(.value != "") |
      if .value == "none" then "PERSIST \($keys[.key])" else "PEXPIRE \($keys[.key]) \(.value)" end),
    "ECHO @", "EVALSHA \($shas[$setting.prelude]) \($named | length) \($named + ($lead + .argv | map(tojson)) | join(" "))",
    "EVAL \"\($look)\" \($keys | length) \($keys | join(" "))"), "DEL \($keys | join(" "))"'
# What is wanted of each step.
wants='.groups[].tests[] | .id as $id | .steps[] |
  [$id, .error + (.reply | flatten | join("|")), ([.state, .ttl_ms] | transpose | map(join(",")) | join(" "))] | join("\t")'
streams='.groups[] | .argv as $lead | .streams[] |
  [.id, .sha256, "\(.calls) \(.now_ns) \($lead + [.cost] | map(tojson) | join(" "))"] | join("\t")'
fit() { # got want: sets fitted to want, where got is like it: 7, a number in 0..7, a text, a list of these
  local i IFS='|' asked="$1|." like="$2|." # a last value that is empty would be lost
  local got=($asked) want=($like) && fitted=$1
  [ "${#got[@]}" = "${#want[@]}" ] || return 0
  for i in "${!got[@]}"; do
    case ${want[i]} in
    ?*..*) [ "${got[i]}" -lt "${want[i]%..*}" ] || [ "${got[i]}" -gt "${want[i]#*..}" ] || got[i]=${want[i]} ;;
    esac
  done
  fitted=${got[*]} && fitted=${fitted%|.}
}
seen() { # looked wanted: sets fitted as fit does
  local i got=($1) want=($2) all=()
  for i in "${!got[@]}"; do
    fit "${got[i]#*,}" "${want[i]#*,}"
    local state=${want[i]%%,*} && [[ ${got[i]%%,*} == ${state//./?} ]] || state=${got[i]%%,*}
    all+=("$state,$fitted")
  done
  fitted="${all[*]}"
}
tests() { # plays the tests of $dir/commands by $protocol, and compares with $dir/wants
  local id='' label='' got='' want='' answer looked=''
  $cli -d '|' "-$protocol" <"$dir/commands" >"$dir/answers"
  exec 4<"$dir/answers"
  while IFS=$'\t' read -r id reply states; do
    while IFS= read -r answer <&4 && [ "$answer" != @ ]; do :; done
    IFS= read -r answer <&4 && read -r looked <&4 || :
    [ "$looked" ] || read -r looked <&4 || :
    [ "$label" = "$script $id" ] || { [ -z "$label" ] || check "$label" "$got" "$want"; label="$script $id" got='' want=''; }
    [ "$got" = "$want" ] || continue
    case $answer/$reply in [A-Z]*/[A-Z]*) fitted=${answer/#"$reply"*/"$reply"} ;; *) fit "$answer" "$reply" ;; esac
    answer=$fitted && seen "$looked" "$states"
    got="$answer $fitted" want="$reply $states"
  done <"$dir/wants"
  [ -z "$label" ] || check "$label" "$got" "$want"
}
stream() { # sha calls now_ns word ...: prints the SHA256 of the replies
  local line replies='' call="EVALSHA $1 1 $name ${*:4}" now_ns=$3 calls=$2
  for ((; calls > 0; calls--)); do # a reply tells when the next call is
    echo "$call $now_ns" >&5
    read -r line <&6
    replies+=$line$'\n' line=${line#*|*|}
    now_ns=$((now_ns + ${line%%|*}))
  done
  printf %s "${replies//|/ }" | sha256sum | cut -d ' ' -f 1
}
play() { # path
  script=$(jq -r .script "$1") shas=''
  while IFS= read -r prelude; do
    sha=$({ [ "$prelude" = '""' ] || jq -j . <<<"$prelude"; cat "$lua/$script.lua"; } | $cli -x SCRIPT LOAD)
    shas+=${shas:+,}$prelude:\"$sha\"
    [ "$prelude" != '""' ] || usual=$sha
  done < <(jq '[.groups[].setting.prelude] | unique[]' "$1")
  jq -r --arg name "$name" --arg look "$look" --argjson shas "{$shas}" "$commands" "$1" >"$dir/commands"
  jq -r "$wants" "$1" >"$dir/wants"
  jq -r "$streams" "$1" >"$dir/streams"
  for protocol in 2 3; do
    tests
    [ -s "$dir/streams" ] || continue
    coproc $cli -d '|' "-$protocol" && exec 5>&"${COPROC[1]}" 6<&"${COPROC[0]}"
    while IFS=$'\t' read -r id sha256 words; do
      check "$script $id" "$(stream "$usual" $words)" "$sha256"
      $cli DEL "$name" >/dev/null
    done <"$dir/streams"
    exec 5>&- && eval "exec ${COPROC[1]}>&-" && wait "$COPROC_PID"
  done
}

[ "$*" != - ] || { reservations; exit; }
set +f && [ $# -gt 0 ] || set -- "$vectors"/*_v*.json && set -f
for protocol in 2 3; do
  check '64 bits' "$($cli "-$protocol" INCRBY "$name" 9223372036854775807)" 9223372036854775807
  $cli DEL "$name" >/dev/null
done
for path; do play "$path"; done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
