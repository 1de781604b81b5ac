"""Private servers of both kinds: `lockstorm serve`, and the redis-server and redis-sentinel on the PATH or the program that
LOCKSTORM_REDIS_SERVER names."""

import os
import random
import socket
import subprocess
import tempfile
import time
from pathlib import Path


class Failure(Exception):
    """Something a person should read; no stack trace helps."""


class PortTaken(Failure):
    """Another program has the port."""


# How long a server may take to answer, on a machine that is busy with something else, and how many ports it may find taken.
PATIENCE_S = 30
TRIES = 3

taken = set()

# The real server, and the command that makes a Sentinel of it.
PROGRAM = os.environ.get("LOCKSTORM_REDIS_SERVER")
# The generations that `lockstorm serve --as` knows, the oldest of each project first.
GENERATIONS = {"redis": [(6, 2), (7, 0), (8, 2)], "valkey": [(8, 1), (9, 1)]}


def names():
    """The generations as `--as` takes them."""
    return [f"{project}-{major}.{minor}" for project, all_of in GENERATIONS.items() for major, minor in all_of]


def generation(program):
    """The generation that a real server is of, or else the newest that is older, as `--as` takes it."""
    if not program:
        return "redis-7.0"
    said = subprocess.run([program, "--version"], text=True, capture_output=True, check=True).stdout
    project, version = said.split()[0].lower(), tuple(map(int, said.split("v=")[1].split()[0].split(".")[:2]))
    major, minor = max((one for one in GENERATIONS[project] if one <= version), default=GENERATIONS[project][0])
    return f"{project}-{major}.{minor}"


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


def is_at(port, pid):
    """Whether the server with this process answers at the port, and no other program that has taken it."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"INFO server\r\n")
            said = b""
            while (chunk := connection.recv(4096)):
                said += chunk
                if b"process_id:%d\r\n" % pid in said:
                    return True
    except OSError:
        pass
    return False


class Server:
    """A private server with its own data folder, ended when its block is left."""

    def __init__(self, command):
        """`command` makes the words of the command from a port and the folder."""
        self.command = command
        self.port = None
        self.folder = tempfile.TemporaryDirectory()

    def start(self):
        if self.port is not None:
            return self.start_at(self.port)
        # Another program may take a port between its choice and the start.
        for _ in range(TRIES):
            self.port = free_port()
            try:
                return self.start_at(self.port)
            except PortTaken as error:
                failure = error
        raise failure

    def start_at(self, port):
        command = self.command(port, Path(self.folder.name))
        log = Path(self.folder.name) / "log"
        with open(log, "w") as out:
            # The standard input of `lockstorm serve` ends with this process, however that ends, and so does the server.
            self.process = subprocess.Popen(
                command, cwd=self.folder.name, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + PATIENCE_S
        while (status := self.process.poll()) is None and time.monotonic() < deadline:
            if is_at(port, self.process.pid):
                return
            time.sleep(0.005)
        if status is None:
            self.kill()
        said = log.read_text(errors="replace")
        is_taken = status is not None and "in use" in said
        how = f"does not answer within {PATIENCE_S} s" if status is None else f"ended with {status}"
        raise (PortTaken if is_taken else Failure)(f"{' '.join(command)} {how}\n{said}")

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
    """Either a real server, by the path of its program, or a built lockstorm that imitates this server, by the path of both."""

    def __init__(self, lockstorm=None, program=PROGRAM):
        self.lockstorm = lockstorm
        self.program = program
        self.redis = program or "redis-server"
        self.real_sentinel = [program, "--sentinel"] if program else ["redis-sentinel"]
        self.generation = generation(program)
        self.name = "lockstorm" if lockstorm else Path(self.redis).name

    def node(self, *options):
        """A server with some of the options of redis.conf, each a name and a value. It stores no keys."""
        if self.lockstorm:
            words = [self.lockstorm, "serve", "--as", self.generation, "--data", ".", "--end-with-stdin"]
            words += [word for name, value in [("save", ""), *options] for word in ("--option", f"{name}={value}")]
        else:
            words = [self.redis, "--save", "", "--appendonly", "no"]
            words += [word for name, value in options for word in (f"--{name}", str(value))]
        return Server(lambda port, _: [*words, "--port", str(port)])

    def sentinel(self, *lines):
        """A Sentinel whose file has these lines."""
        def command(port, folder):
            file = folder / "sentinel.conf"
            file.write_text("\n".join([f"port {port}", *lines, ""]))
            if self.lockstorm:
                words = [self.lockstorm, "serve", "--as", self.generation, "--sentinel", "--config", str(file)]
                return [*words, "--end-with-stdin"]
            return [self.real_sentinel[0], str(file), *self.real_sentinel[1:]]

        return Server(command)
