#!/usr/bin/env bash
# redis-cli as scripts use it: raw and formatted replies, both protocols, pipes, files of commands, its own modes.
set -uo pipefail

cli=(redis-cli -h "$REDIS_HOST" -p "$REDIS_PORT")
say() { printf '%s\n' "-- $*"; }
# redis-cli says how long a command took when that was more than half a second, as on a busy machine.
untimed() { grep -vE '^\([0-9.]+s\)$'; }

for protocol in -2 -3; do
    say "protocol $protocol"
    while IFS= read -r line; do
        [ -n "$line" ] || continue
        say "$line"
        # A line is split as redis-cli itself splits one.
        printf '%s\n' "$line" | "${cli[@]}" "$protocol" --no-raw 2>&1 | untimed
    done <<'COMMANDS'
FLUSHALL
PING
SET key "a value with \x00 bytes"
GET key
GET none
INCR key
HSET hash f 1 g 2
HGETALL hash
SADD set one
SMEMBERS set
ZADD sorted 1 a 2.5 b inf c
ZRANGE sorted 0 -1 WITHSCORES
ZSCORE sorted c
LPUSH list a b c
LRANGE list 0 -1
CONFIG GET maxmemory
XADD stream 1-1 f v
XRANGE stream - +
XINFO STREAM stream
GEOADD geo 13.361389 38.115556 Palermo
GEOPOS geo Palermo none
EVAL "return {1, {2, 'three'}, false, redis.error_reply('MY error')}" 0
EVAL "redis.setresp(3); return {map={a=1}}" 0
EVAL "redis.setresp(3); return true" 0
CLIENT GETNAME
COMMAND COUNT
COMMAND GETKEYS MSET a 1 b 2
COMMAND DOCS nosuch
ACL WHOAMI
OBJECT ENCODING list
MEMORY USAGE none
BITFIELD bits SET u8 0 200 GET i8 0
LPOS list b RANK 0
XGROUP CREATE stream g $
XREADGROUP GROUP g c STREAMS stream >
FUNCTION LIST
SCRIPT EXISTS 0000000000000000000000000000000000000000
DBSIZE
GET
NOSUCH a b c
CLUSTER INFO
COMMANDS
done

say "a transaction and a script from standard input"
"${cli[@]}" <<'COMMANDS' 2>&1 | untimed
MULTI
SET a 1
INCR a
LPUSH a x
EXEC
MULTI
SET a
EXEC
DISCARD
COMMANDS

say "ACL CAT"
"${cli[@]}" ACL CAT scripting | sort

say "--csv and --json"
"${cli[@]}" --csv ZRANGE sorted 0 -1 WITHSCORES
"${cli[@]}" -3 --json HGETALL hash
"${cli[@]}" -3 --json ZRANGE sorted 0 1 WITHSCORES

say "--eval"
script=$(mktemp)
printf 'return {KEYS[1], ARGV[1], redis.call("GET", KEYS[1])}' >"$script"
"${cli[@]}" --eval "$script" a , b
rm -f "$script"

say "--pipe"
for n in $(seq 1 2000); do
    printf '*3\r\n$3\r\nSET\r\n$%d\r\nn:%s\r\n$%d\r\n%s\r\n' $((2 + ${#n})) "$n" ${#n} "$n"
done | "${cli[@]}" --pipe 2>&1 | tail -n 1
"${cli[@]}" DBSIZE

say "--scan"
"${cli[@]}" --scan --pattern 'n:1?' | sort
"${cli[@]}" --bigkeys 2>&1 | grep -c '^Biggest'

say "-x and exit codes"
printf 'from standard input' | "${cli[@]}" -x SET piped
"${cli[@]}" GET piped
"${cli[@]}" -e INCR piped 2>&1
say "exit $?"

# The suite plays in one folder on both servers at once: what it writes down has a name of its own.
log=$(mktemp)
trap 'rm -f "$log"' EXIT

say "a subscriber"
"${cli[@]}" SUBSCRIBE news >"$log" 2>&1 &
subscriber=$!
until [ "$("${cli[@]}" PUBSUB NUMSUB news | tail -n 1)" = 1 ]; do sleep 0.01; done
"${cli[@]}" PUBLISH news hello
until grep -q hello "$log"; do sleep 0.01; done
kill "$subscriber"
wait "$subscriber" 2>/dev/null
cat "$log"

say "a blocked client"
"${cli[@]}" BLPOP queue 20 >"$log" &
blocked=$!
until "${cli[@]}" INFO clients | grep -q '^blocked_clients:1'; do sleep 0.01; done
"${cli[@]}" RPUSH queue x
wait "$blocked"
cat "$log"

echo done
