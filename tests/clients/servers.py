"""Private servers of both kinds: `lockstorm serve` and what Debian packages as redis-server and redis-sentinel."""

import random
import socket
import subprocess
import tempfile
import time
from pathlib import Path


class Failure(Exception):
    """Something a person should read; no stack trace helps."""


taken = set()


def free_port():
    """One below those that the system gives to connections, of which one could take it before the server does."""
    while True:
        port = random.randrange(10_000, 32_768)
        if port in taken:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        taken.add(port)
        return port


class Server:
    """A private server with its own data folder, ended when its block is left."""

    def __init__(self, command, port):
        self.command = command
        self.port = port
        self.folder = tempfile.TemporaryDirectory()

    def start(self):
        # The standard input of `lockstorm serve` ends with this process, however that ends, and so does the server.
        self.process = subprocess.Popen(
            self.command,
            cwd=self.folder.name,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise Failure(f"{' '.join(self.command)} does not answer on port {self.port}")
                time.sleep(0.005)

    def kill(self):
        """It dies at once, as in a crash. Its folder stays."""
        self.process.kill()
        self.process.wait(timeout=10)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=10)
        self.folder.cleanup()


class Kind:
    """Either redis-server or a built lockstorm, by the path of the latter."""

    def __init__(self, lockstorm=None):
        self.lockstorm = lockstorm
        self.name = "lockstorm" if lockstorm else "redis-server"

    def node(self, *options):
        """A server with some of the options of redis.conf, each a name and a value. It stores no keys."""
        port = free_port()
        if self.lockstorm:
            given = [word for name, value in [("save", ""), *options] for word in ("--option", f"{name}={value}")]
            return Server([self.lockstorm, "serve", "--port", str(port), "--data", ".", "--end-with-stdin", *given], port)
        given = [word for name, value in options for word in (f"--{name}", str(value))]
        return Server(["redis-server", "--port", str(port), "--save", "", "--appendonly", "no", *given], port)

    def sentinel(self, *lines):
        """A Sentinel whose file has these lines."""
        port = free_port()
        server = Server([], port)
        file = Path(server.folder.name) / "sentinel.conf"
        file.write_text("\n".join([f"port {port}", *lines, ""]))
        if self.lockstorm:
            server.command = [self.lockstorm, "serve", "--sentinel", "--config", str(file), "--end-with-stdin"]
        else:
            server.command = ["redis-sentinel", str(file)]
        return server
