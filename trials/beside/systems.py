"""The systems: how each server is started, asked if it is ready, and made to fail over; and the
rows of the table.

Every server is a process of this program on a port of its own, with its data in a temporary folder.
What differs from its defaults is here.
"""

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from wire import Link

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = Path(os.environ.get("LOCKSTORM_TRIALS", ROOT / "target/trials"))
READY_MAX = 120
JAVA = "exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx256m"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def unprivileged():
    """PostgreSQL does not run as root."""
    return {} if os.getuid() else {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []}


class Server:
    """A node of a system. A subclass knows its command and its question if it is ready."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="beside-"))
        self.folder.chmod(0o755)
        self.port, self.process = free_port(), None
        self.node = f"127.0.0.1:{self.port}"

    def run(self, command, **options):
        log = open(self.folder / "log", "ab")
        # Not in the group of this program: Ctrl-C must reach this program first.
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **options)
        log.close()

    async def is_ready(self, question):
        end = time.monotonic() + READY_MAX
        while not await asyncio.to_thread(question):
            if self.process.poll() is not None or time.monotonic() > end:
                log = (self.folder / "log").read_text(errors="replace")
                raise RuntimeError(f"{type(self).__name__} is not ready: {log[-2000:]}")
            await asyncio.sleep(0.05)

    def asks(self, request, answer):
        """A question in the server's own protocol, on a new connection."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as one:
                one.sendall(request)
                one.settimeout(1)
                return answer in one.recv(4096)
        except OSError:
            return False

    def kill(self):
        if self.process and self.process.poll() is None:
            try:
                os.killpg(self.process.pid, 9)
            except ProcessLookupError:
                pass
            self.process.wait()

    def end(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Redis(Server):
    async def start(self, *more):
        self.run([TARGET / "servers/redis-8.2", "--port", str(self.port), "--save", "", "--dir", self.folder, *more])
        await self.is_ready(lambda: self.asks(b"PING\r\n", b"PONG"))

    def command(self, *words):
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as one:
            one.sendall(" ".join(words).encode() + b"\r\n")
            return one.recv(65536).decode()

    def version(self):
        return "Redis " + self.command("INFO", "server").split("redis_version:")[1].split()[0]


class Etcd(Server):
    async def start(self, name="n1", cluster=None, peer=None):
        peer = peer or free_port()
        self.client_url, self.peer_url = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{peer}"
        # The interval and time-out of elections are etcd's defaults for one site, a tenth of a
        # second and one second.
        self.run([TARGET / "etcd/etcd", "--name", name, "--data-dir", self.folder / "data", "--logger", "zap", "--log-level", "warn",
                  "--listen-client-urls", self.client_url, "--advertise-client-urls", self.client_url,
                  "--listen-peer-urls", self.peer_url, "--initial-advertise-peer-urls", self.peer_url,
                  "--initial-cluster", cluster or f"{name}={self.peer_url}"])
        await self.is_ready(lambda: self.asks(b"GET /health HTTP/1.0\r\n\r\n", b'"health":"true"'))

    def is_leader(self):
        import json
        import urllib.request

        request = urllib.request.Request(self.client_url + "/v3/maintenance/status", data=b"{}")
        status = json.load(urllib.request.urlopen(request, timeout=2))
        return status["leader"] == status["header"]["member_id"]

    @staticmethod
    def version():
        done = subprocess.run([TARGET / "etcd/etcd", "--version"], capture_output=True, text=True, check=True)
        return "etcd " + done.stdout.split()[2]


class ZooKeeper(Server):
    async def start(self, number=1, members=()):
        data = self.folder / "data"
        data.mkdir()
        # Sessions of 2 s need ticks of 1 s at most: their shortest time-out is two ticks.
        lines = ["tickTime=500", f"dataDir={data}", f"clientPort={self.port}", "clientPortAddress=127.0.0.1", "admin.enableServer=false",
                 "4lw.commands.whitelist=ruok,srvr", "initLimit=20", "syncLimit=10"]
        lines += [f"server.{at}=127.0.0.1:{first}:{second}" for at, (first, second) in enumerate(members, 1)]
        (data / "myid").write_text(str(number))
        (self.folder / "zoo.cfg").write_text("\n".join(lines) + "\n")
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        classpath = TARGET / "zookeeper/target/dependency/*"
        self.run(["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", str(classpath), main, self.folder / "zoo.cfg"])
        await self.is_ready(lambda: self.asks(b"srvr", b"Mode: "))

    def is_leader(self):
        return self.asks(b"srvr", b"Mode: leader")

    @staticmethod
    def version():
        [jar] = (TARGET / "zookeeper/target/dependency").glob("zookeeper-[0-9]*.jar")
        return "ZooKeeper " + jar.stem.split("-")[1]


SQL = """
import sys

import psycopg

port, *statements = sys.argv[1:]
with psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres", autocommit=True, sslmode="disable") as one:
    for statement in statements:
        found = one.execute(statement)
        if found.description:
            print(found.fetchone()[0])
"""


class Postgres(Server):
    config = {}
    tables = ""

    # Where its programs are that its user may run.
    programs = TARGET / "postgres"

    def program(self, name):
        return self.programs / "bin" / name

    def is_runnable(self):
        try:
            subprocess.run([self.program("postgres"), "--version"], check=True, stdout=subprocess.DEVNULL, **unprivileged())
        except PermissionError:
            return False
        return True

    async def start(self):
        self.data = self.folder / "data"
        if not os.getuid():
            os.chown(self.folder, pwd.getpwnam("nobody").pw_uid, -1)
        if not self.is_runnable():
            # A folder on the way to them is closed to that user.
            for part in ("bin", "lib", "share"):
                shutil.copytree(self.programs / part, self.folder / "programs" / part, symlinks=True)
            self.programs = self.folder / "programs"
        initdb = [self.program("initdb"), "-D", self.data, "-U", "postgres", "-A", "trust", "--no-instructions"]
        await asyncio.to_thread(subprocess.run, initdb, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **unprivileged())
        await self.start_again()
        if self.tables:
            self.sql(self.tables)

    async def start_again(self, **config):
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "port": self.port, **self.config, **config}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self.run([self.program("postgres"), "-D", self.data, *words], **unprivileged())
        await self.is_ready(self.answers)

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def copy(self, primary):
        """Takes a stopped server's files, for a standby of it."""
        self.data = self.folder / "data"
        self.programs = primary.programs
        shutil.copytree(primary.data, self.data)
        (self.data / "standby.signal").touch()
        if not os.getuid():
            subprocess.run(["chown", "-R", f"--reference={primary.data}", self.folder], check=True)
        self.data.chmod(0o700)

    def sql(self, *statements):
        done = subprocess.run([TARGET / "databases/bin/python", "-c", SQL, str(self.port), *statements], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout

    def answers(self):
        try:
            return "1" in self.sql("SELECT 1")
        except RuntimeError:
            return False

    def version(self):
        done = subprocess.run([self.program("postgres"), "--version"], capture_output=True, text=True, check=True)
        return "PostgreSQL " + done.stdout.split()[2]


class PostgresAlive(Postgres):
    """With keep-alives that end a silent connection within some 2 s; an answer that stays
    unacknowledged ends it as well.
    """

    config = {"tcp_keepalives_idle": 1, "tcp_keepalives_interval": 1, "tcp_keepalives_count": 1, "tcp_user_timeout": 2000}


class PostgresRow(PostgresAlive):
    tables = "CREATE TABLE locks (name text PRIMARY KEY, owner text NOT NULL, until timestamptz NOT NULL, token bigint NOT NULL)"


class MariaDb(Server):
    config = ()

    async def start(self):
        data = self.folder / "data"
        program = shutil.which("mariadbd") or "/usr/sbin/mariadbd"
        me = pwd.getpwuid(os.getuid()).pw_name
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", f"--user={me}", "--skip-test-db",
                   "--auth-root-authentication-method=normal"]
        await asyncio.to_thread(subprocess.run, install, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        user = self.folder / "user.sql"
        user.write_text("CREATE USER trial@'127.0.0.1' IDENTIFIED BY 'trial';\n")
        self.run([program, "--no-defaults", f"--datadir={data}", f"--user={me}", f"--port={self.port}", "--bind-address=127.0.0.1",
                  "--skip-name-resolve", f"--socket={self.folder}/socket", f"--pid-file={self.folder}/pid",
                  f"--init-file={user}", *self.config])
        await self.is_ready(lambda: self.asks(b"", b"MariaDB"))

    @staticmethod
    def version():
        done = subprocess.run([shutil.which("mariadbd") or "/usr/sbin/mariadbd", "--version"], capture_output=True, text=True, check=True)
        return "MariaDB " + done.stdout.split("Ver ")[1].split("-")[0]


class MariaDbAlive(MariaDb):
    config = ("--tcp-keepalive-time=1", "--tcp-keepalive-interval=1", "--tcp-keepalive-probes=1")


# Failovers: what it is made of, and the function that takes the node away and has another one
# decide. Each returns the nodes of each client.


class RedisFailover:
    """A master and a replica, which lacks what came after it was cut off, as in T11 of the
    scoreboard.
    """

    words = "the link to the replica is cut, the master is killed and the replica promoted"

    async def start(self):
        self.servers = [Redis(), Redis()]
        master, replica = self.servers
        await master.start("--repl-diskless-sync-delay", "0")
        self.link = Link(master.node)
        host, port = self.link.address.split(":")
        await replica.start("--replicaof", host, port)
        await replica.is_ready(lambda: "master_link_status:up" in replica.command("INFO", "replication"))

    def nodes(self, client):
        return [self.servers[0 if client == "c1" else 1].node]

    async def before_grant(self):
        self.link.cut()

    async def take_away(self):
        self.servers[0].kill()
        await asyncio.to_thread(self.servers[1].command, "REPLICAOF", "NO", "ONE")

    def end(self):
        self.link.close()
        [server.end() for server in self.servers]


class PostgresFailover:
    """A primary and an asynchronous standby, made of a copy of its files."""

    words = "the link to the standby is cut, the primary is killed and the standby promoted"
    kind = Postgres

    async def start(self):
        self.servers = [self.kind(), self.kind()]
        primary, standby = self.servers
        await primary.start()
        await asyncio.to_thread(primary.stop)
        standby.copy(primary)
        await primary.start_again()
        self.link = Link(primary.node)
        await standby.start_again(primary_conninfo="host={} port={} user=postgres".format(*self.link.address.split(":")))
        await primary.is_ready(lambda: "streaming" in primary.sql("SELECT max(state) FROM pg_stat_replication"))

    def nodes(self, client):
        return [self.servers[0 if client == "c1" else 1].node]

    async def before_grant(self):
        self.link.cut()

    async def take_away(self):
        self.servers[0].kill()
        await asyncio.to_thread(self.servers[1].sql, "SELECT pg_promote()")

    def end(self):
        self.link.close()
        [server.end() for server in self.servers]


class Ensemble:
    """Three nodes, of which the leader is killed."""

    words = "the leader of three nodes is killed"

    async def start(self):
        self.servers = [self.kind() for _ in range(3)]
        await self.join()
        end = time.monotonic() + READY_MAX
        while self.leader() is None:
            if time.monotonic() > end:
                raise RuntimeError("no leader")
            await asyncio.sleep(0.1)

    def leader(self):
        return next((server for server in self.servers if server.is_leader()), None)

    def nodes(self, client):
        return [server.node for server in self.servers]

    async def before_grant(self):
        pass

    async def take_away(self):
        leader = await asyncio.to_thread(self.leader)
        leader.kill()

    def end(self):
        [server.end() for server in self.servers]


class PostgresRowFailover(PostgresFailover):
    kind = PostgresRow


class EtcdEnsemble(Ensemble):
    kind = Etcd

    async def join(self):
        peers = [free_port() for _ in self.servers]
        cluster = ",".join(f"n{at}=http://127.0.0.1:{port}" for at, port in enumerate(peers, 1))
        starts = [server.start(f"n{at}", cluster, port) for at, (server, port) in enumerate(zip(self.servers, peers), 1)]
        await asyncio.gather(*starts)


class ZooKeeperEnsemble(Ensemble):
    kind = ZooKeeper

    async def join(self):
        members = [(free_port(), free_port()) for _ in self.servers]
        await asyncio.gather(*[server.start(at, members) for at, server in enumerate(self.servers, 1)])


@dataclass
class Row:
    """A row of the table: a system with one of its locks."""

    key: str
    server: type
    lock: str
    promises: str
    command: str
    setup: list = field(default_factory=list)
    # With the fencing token, where that is another command.
    with_token: str | None = None
    failover: type | None = None
    no_failover: str = ""
    # A watchdog or a session keeps it.
    renewed: bool = True
    # The claims of which a lock that is broken on purpose must be found violated.
    control: tuple = ()


def python(lock):
    return f"exec '{TARGET}/databases/bin/python' trials/beside/databases/peer.py {lock}"


CURATOR = f"{JAVA} -cp '{TARGET}/zookeeper/target/peer.jar:{TARGET}/zookeeper/target/dependency/*' CuratorPeer"
PEER = f"{JAVA} -cp '{TARGET}/jvm/target/peer.jar:{TARGET}/jvm/target/dependency/*' Peer"

NO_REPLICA = "no replica of it is set up"

ROWS = [
    Row("redis-lockstorm", Redis, "lockstorm-client", "A lease by the server's clock; asynchronous replication may lose it.",
        f"exec '{TARGET}/ours'", ["servers", "ours"], with_token=f"exec '{TARGET}/ours' fenced", failover=RedisFailover),
    Row("redis-redisson", Redis, "Redisson RLock", "A lease by the server's clock, or a watchdog that renews it; as Redis replicates.",
        f"{PEER} redisson", ["servers", "jvm"], with_token=f"{PEER} redisson-fenced", failover=RedisFailover),
    Row("redis-redisson-careful", Redis, "Redisson RLock, remainTimeToLive()",
        "As above; it pings idle connections, and asks for the remaining time after a grant.",
        f"{PEER} redisson-careful", ["servers", "jvm"], failover=RedisFailover),
    Row("etcd", Etcd, "concurrency.Mutex", "A key for as long as its session's lease lives; the resource has to validate its revision.",
        f"exec '{TARGET}/etcd/peer'", ["etcd"], failover=EtcdEnsemble),
    Row("zookeeper", ZooKeeper, "Curator InterProcessMutex",
        "At no instant two clients think that they hold it, if SUSPENDED counts as lost.",
        CURATOR, ["zookeeper"], with_token=f"{CURATOR} token", failover=ZooKeeperEnsemble),
    Row("postgres", Postgres, "advisory lock", "Held until released or the session ends.",
        python("postgres"), ["postgres", "databases"], failover=PostgresFailover),
    Row("postgres-alive", PostgresAlive, "advisory lock, keep-alives of 1 s", "As above; a silent connection ends after its keep-alives.",
        python("postgres-alive"), ["postgres", "databases"], failover=PostgresFailover),
    Row("postgres-row", PostgresRow, "row with a lease", "A lease by the server's clock, and a token from the row.",
        python("postgres-row"), ["postgres", "databases"], failover=PostgresRowFailover, renewed=False),
    Row("mariadb", MariaDb, "GET_LOCK", "Held until released or the connection ends.",
        python("mariadb"), ["databases", "mariadb"], no_failover=NO_REPLICA),
    Row("mariadb-alive", MariaDbAlive, "GET_LOCK, keep-alives of 1 s",
        "As above; the server ends a silent connection after its keep-alives.",
        python("mariadb"), ["databases", "mariadb"], no_failover=NO_REPLICA),
]


def broken(key, mistake, *claims):
    """A lock on Redis with one mistake, of the scoreboard's controls."""
    command = f"exec '{TARGET}/python/bin/python' trials/python/peer.py {key}"
    return Row(key, Redis, f"control: {mistake}", "", command, ["servers", "python"], control=claims)


CONTROLS = [
    broken("look-then-set", "EXISTS, then SET", "T1"),
    broken("bare-del", "release by DEL", "T2", "T3", "T7"),
    broken("late-deadline", "a deadline that is too late", "T4"),
    broken("no-lease", "no lease", "T5", "T5m", "T6"),
    broken("never-renews", "a watchdog that never renews", "T9"),
    broken("silent-watchdog", "a watchdog that reports no loss", "T10"),
]
