#!/usr/bin/env python3
"""A peer with a lock of a SQL database: peer.py LOCK.

An advisory lock belongs to the connection: it has no lease and no renewal, and is free when the
server ends the connection. A row belongs to the owner that it names, until the time that it names,
by the server's clock. A driver's connection that is broken is opened again for the next request,
since an application has to do so.
"""

import json
import sys
import time
import uuid
from importlib.metadata import version


def say(**message):
    print(json.dumps(message), flush=True)


class NotHeld(Exception):
    """The server says that the lock is not held; nothing has changed."""


class Postgres:
    """`pg_advisory_lock` by psycopg."""

    library, package, can = "PostgreSQL advisory lock", "psycopg", ["wait"]
    options = {}

    def open(self, node, name, timeout_ms):
        self.node, self.name, self.timeout_ms, self.connection = node, name, timeout_ms, None
        self.connected()

    def connected(self):
        import psycopg

        if self.connection is None or self.connection.closed:
            host, port = self.node.rsplit(":", 1)
            # Its shortest limit of a connection attempt is 2 s.
            self.connection = psycopg.connect(
                host=host, port=port, user="postgres", dbname="postgres", autocommit=True, connect_timeout=2, sslmode="disable",
                **self.options)
        return self.connection

    def one(self, statement, *values):
        row = self.connected().execute(statement, values).fetchone()
        return row and row[0]

    def acquire(self, wait_ms, lease_ms):
        import psycopg

        if wait_ms == 0:
            return {} if self.one("SELECT pg_try_advisory_lock(hashtext(%s))", self.name) else None
        connection = self.connected()
        connection.execute(f"SET lock_timeout = {int(wait_ms or 0)}")
        try:
            connection.execute("SELECT pg_advisory_lock(hashtext(%s))", (self.name,))
        except psycopg.errors.LockNotAvailable:
            return None
        return {}

    def release(self, held):
        if not self.one("SELECT pg_advisory_unlock(hashtext(%s))", self.name):
            raise NotHeld("pg_advisory_unlock returned false")


class PostgresAlive(Postgres):
    """With keep-alives that end a silent connection in some 2 s, at both ends: the server's are
    those of its configuration.
    """

    library = "PostgreSQL advisory lock, keep-alives of 1 s"
    options = {"keepalives_idle": 1, "keepalives_interval": 1, "keepalives_count": 1, "tcp_user_timeout": 2000}


class PostgresRow(PostgresAlive):
    """A row for each lock, with its owner, the end of its lease by the server's clock, and a number
    that grows with each grant.
    """

    library, can = "PostgreSQL row with a lease", ["token", "extend"]

    def open(self, node, name, timeout_ms):
        super().open(node, name, timeout_ms)
        self.lock = """INSERT INTO locks AS l (name, owner, until, token) VALUES (%s, %s, clock_timestamp() + %s * interval '1 ms', 1)
            ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until, token = l.token + 1
            WHERE l.until < clock_timestamp() RETURNING token"""

    def acquire(self, wait_ms, lease_ms):
        owner, asked = uuid.uuid4().hex, time.time() * 1000
        token = self.one(self.lock, self.name, owner, lease_ms)
        # It relies on the lease from before it asked, as the server's clock and its own run at the
        # same rate.
        return None if token is None else {"held": (owner, lease_ms), "token": token, "until_ms": int(asked + lease_ms)}

    def release(self, held):
        # The row stays, so that its number keeps growing.
        if not self.one("UPDATE locks SET until = '-infinity' WHERE name = %s AND owner = %s AND until > clock_timestamp() RETURNING 1",
                        self.name, held[0]):
            raise NotHeld("no row was changed")

    def extend(self, held, lease_ms):
        asked = time.time() * 1000
        if not self.one("""UPDATE locks SET until = clock_timestamp() + %s * interval '1 ms'
                WHERE name = %s AND owner = %s AND until > clock_timestamp() RETURNING 1""", lease_ms, self.name, held[0]):
            raise NotHeld("no row was changed")
        return {"until_ms": int(asked + lease_ms)}


class MariaDb:
    """`GET_LOCK` by PyMySQL, which has no limit of a wait that is not that of a read: so it does
    not wait.
    """

    library, package, can = "MariaDB GET_LOCK", "PyMySQL", []

    def open(self, node, name, timeout_ms):
        self.node, self.name, self.timeout_ms, self.connection = node, name, timeout_ms, None
        self.connected()

    def connected(self):
        import pymysql

        if self.connection is None or not self.connection.open:
            host, port = self.node.rsplit(":", 1)
            timeout = self.timeout_ms and self.timeout_ms / 1000
            self.connection = pymysql.connect(host=host, port=int(port), user="trial", password="trial", autocommit=True,
                                              connect_timeout=2, read_timeout=timeout, write_timeout=timeout)
        return self.connection

    def one(self, statement, *values):
        with self.connected().cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchone()[0]

    def acquire(self, wait_ms, lease_ms):
        return {} if self.one("SELECT GET_LOCK(%s, 0)", self.name) == 1 else None

    def release(self, held):
        if self.one("SELECT RELEASE_LOCK(%s)", self.name) != 1:
            raise NotHeld("RELEASE_LOCK did not return 1")


LOCKS = {"postgres": Postgres, "postgres-alive": PostgresAlive, "postgres-row": PostgresRow, "mariadb": MariaDb}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in LOCKS:
        sys.exit(f"usage: peer.py {'|'.join(LOCKS)}")
    lock, holds = LOCKS[sys.argv[1]](), {}
    import psycopg  # noqa: F401
    import pymysql  # noqa: F401

    say(type="hello", protocol=1, library=lock.library, version="", driver=f"{lock.package} {version(lock.package)}", can=lock.can)
    for line in sys.stdin:
        asked = json.loads(line)
        said = {"id": asked["id"]}
        try:
            match asked["type"]:
                case "init":
                    first = asked["locks"][0]
                    lock.open(first["nodes"][0], first["name"], asked["timeout_ms"])
                    said["type"] = "ready"
                case "acquire":
                    granted = lock.acquire(asked["wait_ms"], asked["lease_ms"] or asked.get("watchdog_ms"))
                    said["type"] = "refused" if granted is None else "granted"
                    if granted is not None:
                        holds[asked["id"]] = granted.pop("held", None)
                        said |= granted
                case "release":
                    lock.release(holds[asked["hold"]])
                    said["type"] = "released"
                case "extend":
                    said |= lock.extend(holds[asked["hold"]], asked["lease_ms"]) or {}
                    said["type"] = "extended"
        except Exception as error:
            said |= {"type": "error", "text": f"{type(error).__name__}: {error}", "definite": isinstance(error, NotHeld)}
        say(**said)


main()
