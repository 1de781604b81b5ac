#!/usr/bin/env python3
"""Records the append-only files of this folder again: record_aof.py SERVER NAME.

redis-py plays one story on a private server. SERVER is a program in target/trials/servers, NAME a file for a server
before 7.0, and otherwise a folder.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import redis

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
PORT = 17391
OWNERS = [f"c8c7c6c1-cdd6-4784-aa85-6361cc9ef87{number}:48" for number in range(3)]
ACQUIRE = "redis.call('hincrby',KEYS[1],ARGV[2],1) redis.call('pexpire',KEYS[1],ARGV[1])"
RENEW = "if redis.call('hexists',KEYS[1],ARGV[2])==1 then redis.call('pexpire',KEYS[1],ARGV[1]) end"
RELEASE = (
    "if redis.call('hincrby',KEYS[1],ARGV[2],-1)>0 then redis.call('pexpire',KEYS[1],ARGV[1]) "
    "else redis.call('del',KEYS[1]) redis.call('publish','c',0) end"
)
READ = "redis.call('hset',KEYS[1],'mode','read') " + ACQUIRE


def play(server):
    def run(script, key, owner):
        server.eval(script, 1, key, 60_000, OWNERS[owner])

    # In the base: a hold of each shape, a cache, and a read-write lock.
    run(ACQUIRE, "hash:base", 0)
    server.set("lock:base", "token-of-the-base", px=60_000)
    server.set("cache", "1", ex=60)
    run(READ, "read:base", 0)
    server.bgrewriteaof()
    time.sleep(0.5)
    run(RELEASE, "hash:base", 0)
    server.delete("lock:base")
    run(READ, "read:base", 1)
    run(READ, "read:new", 0)
    run(READ, "read:new", 1)
    # Two releases, a renewal, and a lease that ends.
    for _ in range(2):
        lock = redis.lock.Lock(server, "lock:stock", timeout=60)
        lock.acquire()
        lock.extend(60)
        lock.release()
    server.set("lock:stock", "dies", nx=True, px=300)
    run(ACQUIRE, "hash:stock", 0)
    run(ACQUIRE, "hash:stock", 0)
    run(RENEW, "hash:stock", 0)
    run(RELEASE, "hash:stock", 0)
    run(RELEASE, "hash:stock", 0)
    server.set("lock:forever", "t", nx=True)
    time.sleep(3.2)
    server.delete("lock:forever")
    server.set("lock:stock", "next", nx=True, px=60_000)
    # Faults: SET without NX, DEL by hand, FLUSHALL.
    server.set("lock:stock", "thief", px=60_000)
    server.delete("lock:stock")
    run(ACQUIRE, "hash:stock", 1)
    server.delete("hash:stock")
    run(ACQUIRE, "hash:stock", 2)
    # What looks like a fault, and is none.
    server.set("cache", "2", ex=60)
    server.set("cache", "3", ex=60)
    server.delete("cache")
    server.hset("page", "views", 1)
    server.flushall()


def main():
    program, name = sys.argv[1:]
    is_old = "6.2" in program
    with tempfile.TemporaryDirectory() as folder:
        words = ["--port", str(PORT), "--dir", folder, "--save", "", "--appendonly", "yes"]
        words += [] if is_old else ["--aof-timestamp-enabled", "yes"]
        process = subprocess.Popen([ROOT / "target/trials/servers" / program, *words], stdout=subprocess.DEVNULL)
        try:
            time.sleep(0.5)
            server = redis.Redis(port=PORT)
            play(server)
            server.shutdown(nosave=True)
        finally:
            process.wait(timeout=10)
        target = FOLDER / name
        if is_old:
            shutil.copy(Path(folder) / "appendonly.aof", target)
        else:
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(Path(folder) / "appendonlydir", target)


main()
