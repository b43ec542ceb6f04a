# Calls Tatami's scripts by redis-cli, from any POSIX shell. A file to copy; lua/README.md is the contract.
# $redis is redis-cli with its options but -e.

call() { # path EVALSHA's-arguments: sets answer to the reply, a line for each value, or the error
  path=$1 && shift
  answer=$($redis --raw EVALSHA "$@") # last, so it overrides --no-raw and --json
  if [ "${answer%% *}" = NOSCRIPT ]; then
    $redis -x SCRIPT LOAD <"$path" >/dev/null
    answer=$($redis --raw EVALSHA "$@")
  fi
}

# $script is the path of gcra_v2.lua or window_v1.lua, $sha the file's SHA1.
# Prints status, remaining, retry_after_ns and reset_after_ns, or the error.
allow() { # key amount period_ns burst|mode cost [now_ns]
  call "$script" "$sha" 1 "$@"
  printf '%s\n' "$answer"
  [ "${answer%%[!0-9]*}" = 1 ] # so that if allow ... runs what is admitted; an error begins with a letter
}

# $limits is the path of limits_v1.lua, $limits_sha the file's SHA1.
# A limit is 'kind amount period_ns burst name': kind gcra, fixed or sliding, burst - for a
# window; name may be left out. Charges all asks, or none. Sets status (1 charged, 0 refused,
# -1 never), retry_after_ns, binds (the number of the ask that refuses, from 0), reservation,
# and answer, a line each for status, retry_after_ns, and of each ask status, remaining,
# retry_after_ns, reset_after_ns and receipt. Succeeds when charged. Prints an error.
reserve() { # key limit cost ...
  n=$(($# / 3)) at=0 asks='' reservation='' binds=''
  for word; do # after the asks come all keys,
    case $((at % 3)) in
    0) user=$word ;;
    1) limit_key "$user" $word && set -- "$@" "$key" || return ;;
    esac
    at=$((at + 1))
  done
  set -- "$@" '' && at=0 # the server's clock,
  for word; do # and the words of each limit
    case $((at % 3)) in
    0) [ "$at" -lt $((3 * n)) ] || break && user=$word ;;
    1) limit_key "$user" $word ;;
    2) set -- "$@" "$kind" "$amount" "$period_ns" "$burst" "$word" '' && asks="$asks$key
$kind $amount $period_ns $word $burst
" ;;
    esac
    at=$((at + 1))
  done
  shift $((3 * n))
  call "$limits" "$limits_sha" "$n" "$@"
  case $answer in [!0-9-]* | '') printf '%s\n' "$answer" && return 1 ;; esac
  at=0
  {
    read -r status && read -r retry_after_ns
    while IFS= read -r key <&3 && [ "$key" ]; do
      read -r words <&3 && read -r one && read -r remaining && read -r wait && read -r reset && read -r receipt
      reservation="${reservation:+$reservation
}$key
$words
$receipt"
      [ "$status" = 1 ] || [ "$wait" != "$retry_after_ns" ] || binds=${binds:-$at}
      at=$((at + 1))
    done 3<<EOF
$asks
EOF
  } <<EOF
$answer
EOF
  [ "$status" = 1 ]
}

# Of each ask of $reservation the units really used; all 0 cancels. Sends once, and empties
# $reservation: then there is nothing to settle. Succeeds when settled. Prints an error.
settle() { # used ...
  [ "$reservation" ] || return 0
  asks=$# n=0
  for pass in keys words; do
    at=0
    while IFS= read -r key && read -r kind amount period_ns cost burst; do
      read -r receipt
      at=$((at + 1)) && eval "used=\${$at-}"
      case $used in '' | *[!0-9]* | 0?*) at=-1 && break ;; esac
      [ "$at" -le "$asks" ] || break
      [ "$receipt" ] || cost=0 # nothing was charged
      change=$((used - cost))
      [ "$change" != 0 ] || continue
      [ "$receipt" ] || { echo 'used more than 0 of what was not charged' && return 1; }
      case $pass in
      keys) n=$((n + 1)) && set -- "$@" "$key" ;;
      words) set -- "$@" "$kind" "$amount" "$period_ns" "$burst" "$change" "$receipt" ;;
      esac
    done <<EOF
$reservation
EOF
    [ "$at" = "$asks" ] || { echo 'used must be a number from 0 for each ask' && return 1; }
    [ "$pass" = words ] || set -- "$@" '' # the server's clock
  done
  shift "$asks"
  [ "$n" -gt 0 ] || return 0
  reservation='' # also when the call fails: a second give-back admits too much
  call "$limits" "$limits_sha" "$n" "$@"
  [ "${answer%%[!0-9]*}" = 1 ] || { printf '%s\n' "$answer" && return 1; }
}

# Sets key to the one that the Go loader and tatami use, and the words of the limit.
limit_key() { # key kind amount period_ns burst|- [name]
  kind=$2 amount=$3 period_ns=$4 burst=${5#-}
  case $1 in *{*) key=rl:$1 ;; *) key=rl:{$1} ;; esac
  case $1/${6-}/ in
  /* | */[!A-Za-z/]* | */*[!A-Za-z0-9_./-]*) echo "no key, or a bad name: $1, ${6-}" && return 1 ;;
  esac
  key=$key${6:+:$6} && [ "$kind" = gcra ] || key=$key:$period_ns
}
