#!/usr/bin/env python3
"""Records a capture of our client's kinds of locks again: record_ours.py LOCKSTORM SERVER KIND.

`lockstorm run --real` plays a load on a private server, whose MONITOR is recorded. LOCKSTORM is the binary, SERVER a program in
target/trials/servers, KIND a key of SCENARIOS. The commands of the recorder are left out, and owners get the names that they have
outside of runs.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SERVERS = FOLDER.parents[2] / "target/trials/servers"
CONTEND = 'workload.contend = { hold = "20ms..100ms", think = "50ms..150ms", wait = "8s"'
SCENARIOS = {
    "read-write": ('kind = "read-write"', CONTEND + ', shared = "60%", downgrades = "30%", levels = 2 }'),
    "fair": ('kind = "fair"', CONTEND.replace("50ms", "150ms").replace("..150ms\"", "..250ms\"") + " }"),
    "semaphore": ('kind = "semaphore"\npermits = 2', CONTEND + " }"),
    "permits": ('kind = "permit-semaphore"\npermits = 2', CONTEND + " }"),
    "latch": ('kind = "latch"\ncount = 3', 'workload.count = { think = "50ms..150ms", wait = "8s" }'),
}
WRAPPER = """#!/bin/sh
case "$*" in *--port*) ;; *) exec {server} "$@" ;; esac
port=$(echo "$*" | sed -n 's/.*--port \\([0-9]*\\).*/\\1/p')
(sleep 0.15; exec redis-cli -p $port monitor > {capture}) &
exec {server} "$@"
"""


def own(text):
    """Leaves out the commands of the recorder, and names the owners."""
    lines, is_own = [], True
    for line in text.splitlines():
        if "[0 lua]" not in line:
            is_own = not re.search(r'"(EVAL_RO|ROLE|INFO|HELLO|CLIENT|PING|CONFIG|WAIT)"', line)
        if is_own:
            lines.append(re.sub(r"\bc([1-3]):(\d+)", r"c8c7c6c1-cdd6-4784-aa85-6361cc9ef87\1:\2", line))
    return "\n".join(lines) + "\n"


def main():
    lockstorm, server, kind = sys.argv[1:4]
    lock, load = SCENARIOS[kind]
    with tempfile.TemporaryDirectory() as folder:
        wrapper, scenario, capture = (Path(folder) / name for name in ("server", "ours.toml", "capture"))
        wrapper.write_text(WRAPPER.format(server=SERVERS / server, capture=capture))
        wrapper.chmod(0o755)
        scenario.write_text(
            f'[node.m]\n\n[lock]\n{lock}\nsubject = "client"\nwatchdog = "1.5s"\n\n[client.c]\ncount = 3\n{load}\n\n'
            '[run]\nstorm = "400ms"\ncalm = "2s"\n'
        )
        subprocess.run([lockstorm, "run", "--real", "--server", wrapper, "--seed", "1", scenario])
        (FOLDER / f"ours-{kind}.monitor").write_text(own(capture.read_text()))


if __name__ == "__main__":
    main()
