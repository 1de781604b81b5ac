"""The tests that redis-py has of itself, or with the argument `valkey` those of valkey-py: what becomes of each, in both protocols.

They come with the library's source from the registry. Some fail or are skipped on any server of this version, because they are
for a later one, for modules or for a cluster; what counts is that they do so on both.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

LIBRARY = sys.argv[1] if len(sys.argv) > 1 else "redis"
URL = f"redis://{os.environ['REDIS_HOST']}:{os.environ['REDIS_PORT']}/0"
# Those that ask a server for much and wait for little. The others test the library by itself, or want servers of other kinds.
FILES = ["test_commands.py", "test_encoding.py", "test_function.py", "test_pipeline.py", "test_scripting.py"]
OTHERS = {
    "redis": ["redismod", "ssl", "onlycluster", "cp_integration", "multidb_integration"],
    "valkey": ["valkeymod", "ssl", "onlycluster"],
}[LIBRARY]
# The options that name the server.
NAMED = {"redis": ["--redis-url", URL, "--redis-mod-url", URL], "valkey": ["--valkey-url", URL]}[LIBRARY]
# Wants a replica on a port of its own choice.
ELSEWHERE = f"tests/test_commands.py::Test{LIBRARY.title()}Commands::test_psync"
# Python 3.11 before 3.11.8 counts how deep its parser is for all threads at once, and pytest ends with a SystemError where two of them
# parse. No traceback here has a line parsed: `--tb native` has pytest leave that out, and this the marks below a line.
ENVIRONMENT = os.environ | {"PYTHONNODEBUGRANGES": "1"}
OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (\[\d+\] )?(tests/\S+)")


def copy_into(unpacked):
    """The folder of the tests, where no library lies beside them: they are to find the one that is installed. Each run has its own,
    because the suite of another server may run at the same time."""
    [source] = Path().glob(f"{LIBRARY}-*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(unpacked, filter="data")
    folder = unpacked / source.name.removesuffix(".tar.gz")
    shutil.rmtree(folder / LIBRARY)
    return folder


def main():
    with tempfile.TemporaryDirectory() as unpacked:
        play(copy_into(Path(unpacked)))
    print("done")


def play(folder):
    for protocol in "2", "3":
        asked = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "--timeout", "30", "--tb", "native"]
        asked += [*NAMED, "--protocol", protocol]
        asked += ["-m", " and ".join(f"not {other}" for other in OTHERS), "--deselect", ELSEWHERE]
        asked += [f"tests/{file}" for file in FILES]
        done = subprocess.run(asked, cwd=folder, text=True, capture_output=True, env=ENVIRONMENT)
        # 1 says that some have failed.
        if done.returncode not in (0, 1):
            sys.exit(f"{done.stdout}{done.stderr}")
        outcomes = sorted({f"{m[1]} {m[3]}" for m in map(OUTCOME.match, done.stdout.splitlines()) if m})
        passed = sum(outcome.startswith("PASSED") for outcome in outcomes)
        if passed < 350:
            sys.exit(f"only {passed} tests passed\n{done.stdout}")
        print(f"protocol {protocol}: {passed} passed", *outcomes, sep="\n")


main()
