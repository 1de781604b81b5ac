#!/usr/bin/env python3
"""Redis's own test suite, with `lockstorm serve --as redis-7.0` in the place of redis-server and of redis-sentinel.

    tests/suite/run.py [UNIT ...] [--group GROUP] [--jobs N] [--tags TAGS] [--again] [--server PATH] [--real] [--excepted]
                       [--list]

The suite is the one of the Redis that is installed: its sources come from the same Debian archive as the package, into
target/suite/. It has three groups of units: those about a server (unit/.., integration/..), and those about five Sentinels
(sentinel/..) and about a cluster of twenty nodes (cluster/..). Every test must pass, but for those that exceptions.toml
names, each with its reason; these are not run, unless --excepted asks how they fare.

It ends with 0 if all passed, with 1 if not, and with 77 if the sources cannot be had.
"""

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
WORK = TARGET / "suite"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# The programs beside the server that tests call.
TOOLS = ["redis-cli", "redis-benchmark", "redis-check-aof", "redis-check-rdb"]
# How long a unit may say nothing, and how long it may take at all, on a machine that is busy with something else.
SILENCE_S = 120
PATIENCE_S = 600
# Units that run in parallel have separate ports, below the range of ephemeral ports.
PORTS, PORTS_EACH = 15000, 1000
# The groups of units: what a unit's name begins with, and what runs a unit.
GROUPS = {"server": "runtest", "sentinel": "runtest-sentinel", "cluster": "runtest-cluster"}
JOBS_MAX = 16
# A pipe that nothing is written to: what reads it learns that this process has ended.
LIFE = os.pipe()
# What is said of a unit about Sentinels or a cluster that fails otherwise than in a test.
TROUBLE = re.compile(r"^(FAILED: |ERROR: |WARNING: Aborting|Forcing process |\*\*\* Crash report)", re.M)
LINE = re.compile(r"^\[(ok|err|exception|skip|ignore|TIMEOUT)\]: (.*)$")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Failure(Exception):
    """Something a person should read; no stack trace helps."""

    status = 1


class NoSources(Failure):
    status = 77


def run(command, directory=None):
    try:
        done = subprocess.run(command, cwd=directory, text=True, check=True, capture_output=True)
    except FileNotFoundError as error:
        raise Failure(f"{command[0]} is not installed") from error
    except subprocess.CalledProcessError as error:
        raise Failure(f"{' '.join(map(str, command))} failed\n{error.stdout}{error.stderr}") from error
    return done.stdout


def sources():
    """The sources of the Redis that is installed, fetched once."""
    package = run(["dpkg-query", "-W", "-f", "${source:Version}", "redis-server"])
    kept = WORK / "sources" / package.replace(":", "_")
    found = list(kept.glob("redis-*/tests/test_helper.tcl"))
    if found:
        return found[0].parent.parent
    shutil.rmtree(kept, ignore_errors=True)
    for folder in ["lists/partial", "cache", "fetched"]:
        (kept / folder).mkdir(parents=True)
    # The archives that packages come from have the sources too, though a system is seldom told to look for them.
    signed = f" [signed-by={KEYRING}]" if KEYRING.exists() else ""
    line = f"deb-src{signed} $(REPO_URI) $(RELEASE) $(COMPONENT)"
    archives = run(["apt-get", "indextargets", "--format", line, "Created-By: Packages", "Origin: Debian"])
    if not archives:
        raise NoSources("apt-get knows no Debian archive: call `apt-get update` first")
    (kept / "archives.list").write_text("".join(f"{one}\n" for one in sorted(set(archives.splitlines()))))
    settings = {
        "Dir::Etc::SourceList": kept / "archives.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": kept / "lists",
        "Dir::Cache": kept / "cache",
        "APT::Sandbox::User": "",
    }
    apt = ["apt-get", "-q", *(f"-o{name}={value}" for name, value in settings.items())]
    try:
        run([*apt, "update"])
        run([*apt, "source", "--download-only", f"redis={package}"], kept / "fetched")
    except Failure as failure:
        raise NoSources(f"the sources of Redis {package} cannot be had: {failure}") from failure
    [archive] = (kept / "fetched").glob("redis_*.orig.tar.*")
    with tarfile.open(archive) as tar:
        tar.extractall(kept, filter="data")
    [helper] = kept.glob("redis-*/tests/test_helper.tcl")
    return helper.parent.parent


def group_of(unit):
    first = unit.partition("/")[0]
    return first if first in GROUPS else "server"


def units_of(suite):
    """The units in the order in which the suite has them."""
    text = (suite / "tests" / "test_helper.tcl").read_text()
    units = re.search(r"set ::all_tests \{(.*?)\}", text, re.S).group(1).split()
    folders = ["unit/cluster", *(f"{group}/tests" for group in GROUPS if group != "server")]
    files = [path for folder in folders for path in sorted((suite / "tests" / folder).glob("*.tcl"))]
    # The list of the first group leaves out a unit that is there.
    others = [str(path.relative_to(suite / "tests").with_suffix("")).replace("/tests/", "/") for path in files]
    return units + [unit for unit in others if unit not in units]


def said(lines):
    """What the suite says of a test, up to what it says of the next."""
    # The trace of a failure says nothing more; where nothing else is said, it is all there is.
    ends = ("[", "FAILED: caught")
    end = next((at for at, line in enumerate(lines) if line.startswith(ends[: 1 + (at > 0)])), len(lines))
    return "\n".join(line[:300] for line in lines[: min(end, 8)] if line.strip())


@dataclass
class Outcome:
    unit: str
    log: Path
    seconds: float = 0
    passed: list = field(default_factory=list)
    # What each test that failed says.
    failed: dict = field(default_factory=dict)
    # Why the unit did not come to its end.
    ended: str | None = None


class Runner:
    def __init__(self, suite, arguments, exceptions, tags):
        self.suite = suite
        self.arguments = arguments
        self.exceptions = exceptions
        self.tags = tags
        self.units = units_of(suite)
        self.printing = threading.Lock()
        self.ports = queue.SimpleQueue()
        for job in range(arguments.jobs):
            self.ports.put(PORTS + job * PORTS_EACH)

    def prepare(self, unit):
        """A folder for the unit alone: units that share one would clear away each other's files."""
        folder = WORK / "units" / unit.replace("/", "-")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.suite / "tests", folder / "tests", ignore=shutil.ignore_patterns("tmp"))
        for name in [*GROUPS.values(), "utils"]:
            (folder / name).symlink_to(self.suite / name)
        with open(folder / "tests" / "instances.tcl", "a") as instances:
            instances.write(f"\nsource {{{HERE / 'instances.tcl'}}}\n")
        (folder / "src").mkdir()
        for tool in TOOLS:
            (folder / "src" / tool).symlink_to(shutil.which(tool) or f"/{tool} is not installed")
        for server in ["redis-server", "redis-sentinel"]:
            real = shutil.which(server) or f"/{server} is not installed"
            (folder / "src" / server).symlink_to(real if self.arguments.real else HERE / "redis-server")
        # Some tests read the suite's own description of commands.
        (folder / "src" / "commands").symlink_to(self.suite / "src" / "commands")
        return folder

    def play(self, unit):
        port, group = self.ports.get(), group_of(unit)
        try:
            folder = self.prepare(unit)
            with tempfile.TemporaryDirectory(prefix="lockstorm-", ignore_cleanup_errors=True) as servers:
                if group == "server":
                    # Where names are short: that of a Unix socket has 107 bytes, and a checkout may lie deep.
                    kept = folder / "tests" / "tmp"
                    kept.symlink_to(servers)
                else:
                    # Here nothing has such a name, and units look for files beside this folder.
                    kept = folder / "tests" / group / "tmp"
                    kept.mkdir()
                outcome = self.play_at(port, unit, folder)
                self.keep(outcome, kept)
            self.tell(outcome)
            return outcome
        finally:
            self.ports.put(port)

    def keep(self, outcome, kept):
        """Leaves what servers wrote beside the log of a unit that failed; one that panicked fails any unit."""
        for log in sorted([*kept.glob("*/stdout"), *kept.glob("*/err.txt")]):
            _, panic, rest = log.read_text(errors="replace").partition("panicked at ")
            if panic and outcome.ended is None:
                outcome.ended = f"a server panicked at {said(rest.splitlines())}"
        if kept.is_symlink():
            servers = kept.resolve()
            kept.unlink()
            if self.wrong(outcome):
                is_socket = lambda at, names: [name for name in names if Path(at, name).is_socket()]
                shutil.copytree(servers, kept, ignore=is_socket)
        elif not self.wrong(outcome):
            shutil.rmtree(kept)

    def command(self, unit, port):
        """What plays the unit."""
        if group_of(unit) != "server":
            return [f"./{GROUPS[group_of(unit)]}", "--single", unit.partition("/")[2], "--dont-clean"]
        command = ["./runtest", "--single", unit, "--clients", "1", "--durable", "--dont-clean", "--skipfile", "skipped"]
        command += ["--timeout", str(SILENCE_S), "--baseport", str(port), "--portcount", str(PORTS_EACH)]
        left_out = [] if self.arguments.excepted else list(self.tags.get(unit, {}))
        for tag in [*self.arguments.tags.split(), *left_out]:
            command += ["--tags", tag]
        return command

    def play_at(self, port, unit, folder):
        excepted = [] if self.arguments.excepted else list(self.exceptions.get(unit, {}))
        (folder / "skipped").write_text("".join(f"{name}\n" for name in excepted))
        outcome = Outcome(unit, folder / "log")
        begun = time.monotonic()
        environment = {
            **os.environ,
            # What instances.tcl asks for.
            "SUITE_UNIT": unit,
            "SUITE_PORT": str(port),
            "SUITE_SKIPPED": str(folder / "skipped"),
        }
        if not self.arguments.real:
            # The second is the standard input of the servers, which ends with this process.
            environment |= {"LOCKSTORM": str(self.arguments.server), "LOCKSTORM_STDIN": str(LIFE[0])}
        with open(outcome.log, "w") as log:
            process = subprocess.Popen(
                self.command(unit, port),
                cwd=folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
                pass_fds=[LIFE[0]],
            )
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                outcome.ended = f"it takes more than {PATIENCE_S} s"
            finally:
                # Servers that a test has left behind go with it.
                try:
                    os.killpg(process.pid, 9)
                except ProcessLookupError:
                    pass
                process.wait()
        outcome.seconds = time.monotonic() - begun
        self.read(outcome)
        return outcome

    def read(self, outcome):
        """What the log says of each test."""
        text = COLOUR.sub("", outcome.log.read_text(errors="replace"))
        lines = text.splitlines()
        where = f" in tests/{outcome.unit}.tcl"
        for at, line in enumerate(lines):
            found = LINE.match(line)
            if not found:
                continue
            word, rest = found.groups()
            if word == "ok":
                outcome.passed.append(re.sub(r" \(\d+ ms\)$", "", rest))
            elif word == "err" and rest.endswith(where):
                outcome.failed[rest.removesuffix(where)] = said(lines[at + 1 :])
            elif word in ("exception", "TIMEOUT"):
                outcome.ended = f"{word}: {rest}\n{said(lines[at + 1 :])}"
        if outcome.ended is None and group_of(outcome.unit) != "server":
            # After the first test that fails nothing is played there.
            found = None if outcome.failed else TROUBLE.search(text)
            if found:
                outcome.ended = said(text[found.start() :].splitlines())
            elif not outcome.failed and "GOOD! No errors." not in lines:
                outcome.ended = "it stopped before its end"
        elif outcome.ended is None and not any(line.startswith("[1/1 done]") for line in lines):
            outcome.ended = "it stopped before its end"
        # Of some units nothing is left without the tags that were asked to be left out.
        if outcome.ended is None and not (outcome.passed or outcome.failed or self.arguments.tags):
            outcome.ended = "not one test was run"

    def tell(self, outcome):
        with self.printing:
            word = "failed" if self.wrong(outcome) else "ok"
            skipped = 0 if self.arguments.excepted else len(self.exceptions.get(outcome.unit, {}))
            left = f", {skipped} excepted" if skipped else ""
            print(f"{word:6} {outcome.unit}: {len(outcome.passed)} passed{left} ({outcome.seconds:.0f} s)", flush=True)
            excepted = self.exceptions.get(outcome.unit, {})
            for name, says in outcome.failed.items():
                known = f"  [excepted: {excepted[name]}]" if name in excepted else ""
                print(f"       FAILED {name}{known}")
                for line in says.splitlines():
                    print(f"              {line}")
            if outcome.ended:
                print("       " + outcome.ended.replace("\n", "\n       "))
            if self.arguments.excepted:
                for name in outcome.passed:
                    if name in excepted:
                        print(f"       PASSED {name}  [excepted: {excepted[name]}]")
            if word == "failed":
                print(f"       {outcome.log}", flush=True)

    def wrong(self, outcome):
        excepted = self.exceptions.get(outcome.unit, {}) if self.arguments.excepted else {}
        return bool(outcome.ended) or any(name not in excepted for name in outcome.failed)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", nargs="*", metavar="UNIT", help="such as unit/type/list [default: all]")
    parser.add_argument(
        "--group", action="append", choices=GROUPS, help="all units of a group; may be given several times [default: all]"
    )
    parser.add_argument(
        "--jobs", type=int, default=min(4, os.cpu_count() or 1), choices=range(1, JOBS_MAX + 1), metavar="N",
        help=f"how many units at a time, 1 to {JOBS_MAX}",
    )
    parser.add_argument("--tags", default="", help="which tests: such as -slow, or `-slow -needs:debug`")
    parser.add_argument(
        "--again", action="store_true",
        help="play a unit that fails once more, with the machine for itself: many tests measure time",
    )
    parser.add_argument("--server", type=Path, help="the lockstorm to try [default: the one of `cargo build --release`]")
    parser.add_argument("--real", action="store_true", help="try redis-server itself, which tells what the suite is worth here")
    parser.add_argument("--excepted", action="store_true", help="run what exceptions.toml names, too")
    parser.add_argument("--list", action="store_true", help="print the units and what is excepted of them, and end")
    # Tags that are left out begin with a dash, so that they are given as --tags=-slow.
    return parser.parse_args()


def main():
    arguments = parse()
    with open(HERE / "exceptions.toml", "rb") as file:
        exceptions = tomllib.load(file)
    whole, tags, slow = exceptions.pop("units"), exceptions.pop("tags"), exceptions.pop("slow")
    if not shutil.which("tclsh"):
        raise Failure("tclsh is not installed, in which the suite is written (Debian: tcl)")
    runner = Runner(sources(), arguments, exceptions, tags)
    unknown = (set(arguments.units) | set(exceptions) | set(whole) | set(tags) | set(slow)) - set(runner.units)
    if unknown:
        raise Failure(f"the suite has no {', '.join(sorted(unknown))}; --list tells its units")
    if arguments.list:
        for unit in runner.units:
            left = f"  [left out: {whole[unit]}]" if unit in whole else ""
            print(f"{unit}{left or (f'  [slow: {slow[unit]}]' if unit in slow else '')}")
            for name, reason in [*tags.get(unit, {}).items(), *exceptions.get(unit, {}).items()]:
                print(f"    {name}: {reason}")
        return 0
    if not arguments.server and not arguments.real:
        run(["cargo", "build", "--quiet", "--release", "--bin", "lockstorm"], ROOT)
        arguments.server = TARGET / "release" / "lockstorm"
    left_out = {*whole, *(slow if "-slow" in arguments.tags.split() else [])}
    groups = arguments.group or GROUPS
    units = arguments.units or [
        unit for unit in runner.units if unit not in left_out and group_of(unit) in groups
    ]
    begun = time.monotonic()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = list(pool.map(runner.play, units))
    if arguments.again:
        # What the others were doing meanwhile is no excuse any more.
        outcomes = [runner.play(outcome.unit) if runner.wrong(outcome) else outcome for outcome in outcomes]
    wrong = [outcome.unit for outcome in outcomes if runner.wrong(outcome)]
    passed = sum(len(outcome.passed) for outcome in outcomes)
    print(f"{passed} tests passed in {len(units) - len(wrong)} of {len(units)} units ({time.monotonic() - begun:.0f} s)")
    if wrong:
        print(f"not in {', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(f"tests/suite: {failure}", file=sys.stderr)
        sys.exit(failure.status)
