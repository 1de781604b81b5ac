#!/usr/bin/env python3
"""Clients that people use, on `lockstorm serve` and on a real redis-server: what they print must be the same.

    tests/clients/run.py [CLIENT ...] [--on GENERATION ..] [--server PATH]

Each folder here is a client. Its suite reads REDIS_HOST and REDIS_PORT, says what it saw on standard output, one thing a
line, and ends with `done`. It runs on a fresh server of each kind, or on groups of them that it starts itself. The libraries
come from their registries, in the versions that the lock files name, into target/clients/. LOCKSTORM_REDIS_SERVER names another real
server than the redis-server on the PATH, such as a Valkey.

`--on` compares other generations: `lockstorm serve --as GENERATION` with the program of this name in target/trials/servers, or in
the folder that LOCKSTORM_SERVERS names. `--on all` is every generation, `--on short` those of SHORT with the suites of
SHORT_CLIENTS, unless others are named. The differences that differences.toml lists are left out.
"""

import argparse
import difflib
import fnmatch
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from servers import PROGRAM, Failure, Kind, names

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


@dataclass
class Client:
    """What installs a client, in a copy of its folder, and what runs its suite there."""

    steps: list
    suite: list
    # How many servers the suite needs. REDIS_PORTS are those of all of them. A suite that needs none starts its own, of the kind
    # that LOCKSTORM has the path of, or redis-server without it.
    servers: int = 1
    # The client whose installed copy it uses as well.
    beside: str | None = None
    # An example of the root package that it starts, by the path in PEER.
    example: str | None = None
    # Seconds: longer than the suite takes on a machine that is busy with something else.
    patience: int = 180


NPM = ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"]
PIP = [[sys.executable, "-m", "venv", "venv"], ["venv/bin/pip", "install", "-q", "-r", "requirements.txt"]]


# The library's source as it was published, which has its tests.
def source(library):
    return ["venv/bin/pip", "download", "-q", "--no-deps", "--no-binary", library, "-c", "requirements.txt", library]


CLIENTS = {
    "redis-cli": Client([], ["bash", "suite.sh"]),
    "redis-py": Client(PIP, ["venv/bin/python", "suite.py"]),
    "redis-py-tests": Client([*PIP, source("redis")], ["venv/bin/python", "suite.py"], patience=900),
    # The same suite, with the library of Valkey. Its tests are a fork of those of an older redis-py.
    "valkey-py-tests": Client(
        [*PIP, source("valkey")],
        ["venv/bin/python", str(HERE / "redis-py-tests" / "suite.py"), "valkey"],
        patience=900,
    ),
    "valkey-glide": Client(PIP, ["venv/bin/python", "suite.py"], servers=0),
    "ioredis": Client([NPM], ["node", "suite.mjs"]),
    "node-redis": Client([NPM], ["node", "suite.mjs"]),
    "go-redis": Client([["go", "build", "-o", "suite", "."]], ["./suite"]),
    "jvm": Client(
        [["mvn", "-q", "-B", "package", "dependency:copy-dependencies"]],
        ["java", "-cp", "target/suite.jar:target/dependency/*", "Suite"],
    ),
    "shared": Client(PIP, ["venv/bin/python", "suite.py"], servers=3, beside="jvm", example="peer", patience=600),
    "groups": Client([], ["../shared/venv/bin/python", "suite.py"], servers=0, beside="shared", example="peer", patience=600),
}


# The short choice of `--on`: the newest of each project, with the suites that take seconds, and that in which Redisson and our client
# share locks.
SHORT = ["redis-8.2", "valkey-9.1"]
SHORT_CLIENTS = ["redis-cli", "redis-py", "valkey-glide", "jvm", "shared"]

# How many clients are at work at a time; each plays on two kinds of servers at once.
AT_ONCE = 2
INSTALLING = Lock()


def run(command, directory, **more):
    try:
        return subprocess.run(command, cwd=directory, text=True, check=True, **more)
    except FileNotFoundError as error:
        raise Failure(f"{command[0]} is not installed (wanted by {directory.name})") from error
    except subprocess.CalledProcessError as error:
        raise Failure(f"{' '.join(command)} failed in {directory}\n{error.stdout or ''}{error.stderr or ''}") from error


def install(name):
    """A copy of the client's folder with its libraries in it; made again only when something in the folder changed."""
    client = CLIENTS[name]
    if client.beside:
        install(client.beside)
    if client.example:
        # In the profile and with the features of `cargo test --all-features`, which has built it.
        run(["cargo", "build", "--quiet", "--all-features", "--example", client.example], ROOT)
    copy = TARGET / "clients" / name
    stamp = copy / ".installed"
    source = HERE / name
    newest = max(path.stat().st_mtime for path in source.rglob("*"))
    if not stamp.exists() or stamp.stat().st_mtime < newest:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy)
        for step in client.steps:
            run(step, copy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        stamp.touch()
    return copy


# The suites that run, each with what it has started in a process group of its own.
RUNNING = set()


def end_all(_signal, _frame):
    """Ends the suites with this process, as nothing else would."""
    for pid in list(RUNNING):
        os.killpg(pid, signal.SIGKILL)
    os._exit(128 + signal.SIGTERM)


def play(name, copy, kind, ports):
    """The lines of the suite, what it had to play again, and why it did not come to its end, if it did not."""
    client = CLIENTS[name]
    environment = dict(os.environ, REDIS_HOST="127.0.0.1", REDIS_PORTS=",".join(ports))
    environment.pop("LOCKSTORM", None)
    if kind.program:
        environment["LOCKSTORM_REDIS_SERVER"] = kind.program
    if ports:
        environment["REDIS_PORT"] = ports[0]
    else:
        environment["PYTHONPATH"] = os.pathsep.join(map(str, (HERE, HERE / "shared")))
        if kind.lockstorm:
            environment["LOCKSTORM"] = kind.lockstorm
    if client.example:
        environment["PEER"] = str(TARGET / "debug" / "examples" / client.example)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(
        client.suite, cwd=copy, env=environment, text=True, start_new_session=True, **pipes
    ) as suite:
        late = False
        RUNNING.add(suite.pid)
        try:
            said, complained = suite.communicate(timeout=client.patience)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            # With whatever it has started.
            if suite.poll() is None:
                os.killpg(suite.pid, signal.SIGKILL)
            RUNNING.discard(suite.pid)
        if late:
            said, complained = suite.communicate()
    lines = said.splitlines()
    again = [f"{name} on {kind.generation}, {kind.name} {line}" for line in complained.splitlines() if line.startswith("played again: ")]
    if late:
        return lines, again, f"{name} on {kind.generation}, {kind.name}: not done after {client.patience} s\n{complained}"
    if suite.returncode != 0 or not lines or lines[-1] != "done":
        return lines, again, f"{name} on {kind.generation}, {kind.name} ended with {suite.returncode}\n{complained}"
    return lines, again, None


def play_on(name, copy, kind):
    """The same, on fresh servers of one kind."""
    with ExitStack() as running:
        servers = [running.enter_context(kind.node()) for _ in range(CLIENTS[name].servers)]
        return play(name, copy, kind, [str(server.port) for server in servers])


def blocks(name, lines):
    """The lines of a suite, each reply of redis-cli with its command."""
    found = []
    for line in lines:
        if name == "redis-cli" and found and not line.startswith("-- "):
            found[-1].append(line)
        else:
            found.append([line])
    return found


def without(name, generation, said):
    """The lines of both servers without the known differences, and how many lines each left out."""
    listed = tomllib.loads((HERE / "differences.toml").read_text())["differs"]
    known = [one for one in listed if fnmatch.fnmatch(name, one["client"]) and generation in one["on"]]
    lines = []
    for each in said:
        kept = blocks(name, each)
        for one in known:
            kept = [block for block in kept if not re.search(one["lines"], block[0])]
        lines.append([line for block in kept for line in block])
    return lines, [len(all_of) - len(kept) for all_of, kept in zip(said, lines)]


def judge(name, kinds):
    """Plays a suite on the two servers of a generation, and compares what it says."""
    # Several clients share the copy of one, and all of them the compilers.
    with INSTALLING:
        begun = time.monotonic()
        copy = install(name)
        installed = time.monotonic()
    # A suite waits for the most part, so that both servers have theirs at once.
    with ThreadPoolExecutor() as pool:
        plays = list(pool.map(lambda kind: play_on(name, copy, kind), kinds))
    said = [lines for lines, _, _ in plays]
    again = [line for _, lines, _ in plays for line in lines]
    failures = [failure for _, _, failure in plays if failure]
    took = time.monotonic()
    compared, left_out = without(name, kinds[0].generation, said)
    differences = list(difflib.unified_diff(*compared, *(kind.name for kind in kinds), lineterm="", n=1))
    verdict = f"{len(differences)} lines of difference" if differences else "the same"
    known = f", but for {max(left_out)} lines of known differences" if any(left_out) else ""
    head = (f"{name} on {kinds[0].generation}: {len(said[0])} lines, {verdict}{known} "
            f"(installed in {installed - begun:.1f} s, ran in {took - installed:.1f} s)")
    print("\n".join([head, *again, *differences, *failures]), flush=True)
    return not differences and not failures


def servers():
    """The folder of the real servers of each generation."""
    return Path(os.environ.get("LOCKSTORM_SERVERS", ROOT / "target" / "trials" / "servers"))


def program_of(generation):
    program = servers() / generation
    if not program.exists():
        raise Failure(f"{program} is absent, and nothing can be compared without it: `trials/setup servers`")
    return str(program)


def main():
    signal.signal(signal.SIGTERM, end_all)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=f"of {', '.join(CLIENTS)}; all without one")
    parser.add_argument("--on", nargs="+", metavar="GENERATION", help=f"of {', '.join(names())}, or `all`, or `short`")
    parser.add_argument("--server", type=Path, help="a built lockstorm; without it, one is built in release")
    arguments = parser.parse_args()
    clients, on = arguments.clients, arguments.on or []
    if on == ["short"]:
        clients, on = clients or SHORT_CLIENTS, SHORT
    elif on == ["all"]:
        on = names()
    for given, known in (clients, CLIENTS), (on, names()):
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"no {', '.join(unknown)}; there are {', '.join(known)}")
    programs = [program_of(generation) for generation in on] or [PROGRAM]
    for real in map(Kind, [None] * len(programs), programs):
        for program in real.redis, real.real_sentinel[0]:
            if not shutil.which(program):
                raise Failure(f"{program} is not on the PATH, and nothing can be compared without it")
    server = arguments.server
    if server is None:
        run(["cargo", "build", "--release", "--quiet", "--bin", "lockstorm"], ROOT)
        server = TARGET / "release" / "lockstorm"
    lockstorm = str(server.resolve())
    pairs = [[Kind(None, program), Kind(lockstorm, program)] for program in programs]
    # One client installs while another waits for its servers.
    plays = [(name, pair) for pair in pairs for name in clients or CLIENTS]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        same = list(pool.map(lambda play: judge(*play), plays))
    return 0 if all(same) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(failure, file=sys.stderr)
        sys.exit(1)
