#!/usr/bin/env python3
"""A short scoreboard with what must come out of it: our client and redis-py hold, and two broken locks are found. And each other claim
with a lock that has the mistake it is about, a control: it must be found, and where the lock is right, nothing. The peer that the book prints
is played as well: it is no library of its own, so that trials/peers.toml does not have it. Every other library is played once without faults,
so that its peer is known to work; and SCOREBOARD.md must have all of them, in these versions, and every claim.

    trials/run.py [--lockstorm PATH] [--out FOLDER]

A library that tells its user neither a deadline nor a loss lets a paused holder believe too long (T4), and every lock on one node is
lost by a failover that loses its key (T11).
"""

import argparse
import json
import os
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STOCK = ROOT / "scenarios/files/trial"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
FILES = ["late_release", "paused_holder_knows", "crashed_holder", "extend_after_loss"]
# Peers of any language wait most of the time.
AT_ONCE = 4
# What each must come to, by claim.
EXPECTED = {
    "lockstorm-client": {"T2": "holds", "T4": "holds", "T5": "holds", "T8": "holds"},
    "redis-py": {"T2": "holds", "T4": "violated", "T5": "holds", "T8": "holds"},
    "bare-del": {"T2": "violated", "T4": "violated", "T5": "holds", "T8": "holds"},
    "blind-extend": {"T2": "holds", "T4": "violated", "T5": "holds", "T8": "violated"},
    "minimal": {"T2": "holds", "T4": "violated", "T5": "holds", "T8": "holds"},
}
MINIMAL = """
[peer.minimal]
command = "target/trials/python/bin/python trials/minimal/peer.py"
setup = "trials/setup python"
"""
# Controls, each with the claims of its mistake and one that it must keep: what is found is the mistake, and not that the peer is slow or does nothing.
CONTROLS = {
    "look-then-set": {"T1": "violated"},
    "adding-extend": {"T8": "holds", "T14": "violated"},
    "bare-del": {"T3": "violated", "T7": "violated"},
    "late-deadline": {"T2": "holds", "T4": "violated"},
    "no-lease": {"T2": "holds", "T5": "violated", "T6": "violated"},
    "never-renews": {"T9": "violated"},
    "silent-watchdog": {"T9": "holds", "T10": "violated"},
    "quorum-of-one": {"T12": "violated"},
    "quorum-bare-del": {"T13": "violated"},
}


def came_out(lockstorm, out, files, listed, only):
    """How each of these libraries came out, in their order, by the claim of each file, with the evidence; and what it is called."""
    out.mkdir(parents=True, exist_ok=True)
    command = [lockstorm.resolve(), "scoreboard", listed, *files, "--only", ",".join(only), "--out", out]
    subprocess.run(command, cwd=ROOT, check=True)
    board = json.loads((out / "scoreboard.json").read_text())
    ids = [claim["id"] for claim in board["claims"]]
    return [(tried["library"], dict(zip(ids, tried["cells"], strict=True))) for tried in board["libraries"] + board["controls"]]


def wrong(name, expected, cells):
    return [f"{name}, {claim}: {cells[claim]['came_out']}, not {must}: {' '.join(cells[claim]['evidence'])}"
            for claim, must in expected.items() if cells[claim]["came_out"] != must]


def differs(libraries, claims):
    """What the scoreboard of the repository has not, or has beside what there is; its first table is that of the libraries."""
    lines = (ROOT / "SCOREBOARD.md").read_text().split("\n\n")
    table = next(part for part in lines if part.startswith("|"))
    (_, driver, tried, *header), _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    if (driver, tried) != ("driver", "tried"):
        return ["SCOREBOARD.md has no columns driver and tried: lockstorm scoreboard trials/peers.toml --out ."]
    differ = {row[0] for row in rows} ^ set(libraries) | set(header) ^ set(claims)
    return [f"SCOREBOARD.md is of other libraries or claims ({name}): lockstorm scoreboard trials/peers.toml --out ." for name in sorted(differ)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstorm", type=Path, help="a built lockstorm; without it, one is built in release")
    parser.add_argument("--out", type=Path, default=TARGET / "trials/short", help="where the scoreboard is written (%(default)s)")
    arguments = parser.parse_args()
    lockstorm, out = arguments.lockstorm, arguments.out.resolve()
    if lockstorm is None:
        subprocess.run(["cargo", "build", "--release", "--quiet", "--bin", "lockstorm"], cwd=ROOT, check=True)
        lockstorm = TARGET / "release" / "lockstorm"
    out.mkdir(parents=True, exist_ok=True)
    # Controls with claims of their own are compared here, for only some of these are among the files.
    listed = out / "peers.toml"
    text = (ROOT / "trials/peers.toml").read_text()
    lines = text.splitlines()
    right = [name for name, peer in tomllib.loads(text)["peer"].items() if "control" not in peer]
    listed.write_text("\n".join(line for line in lines if not line.startswith("control")) + MINIMAL)
    files = [f"trial/{name}.toml" for name in FILES]
    found = []
    tried = came_out(lockstorm, out, files, listed, EXPECTED)
    # In the order of the list, as it was asked for.
    libraries = []
    for (name, expected), (library, cells) in zip(EXPECTED.items(), tried, strict=True):
        found += wrong(name, expected, cells)
        libraries += [library] if name in right else []
    of_claim = {tomllib.loads(file.read_text())["claim"]["id"]: f"trial/{file.name}" for file in STOCK.glob("*.toml")}
    alone = CONTROLS | {name: {"T1": "holds"} for name in right if name not in EXPECTED}

    def try_alone(name):
        return came_out(lockstorm, out / name, [of_claim[claim] for claim in alone[name]], listed, [name])

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, [(library, cells)] in zip(alone, pool.map(try_alone, alone), strict=True):
            found += wrong(name, alone[name], cells)
            libraries += [library] if name in right else []
    found += differs(libraries, of_claim)
    print("\n".join(found) or f"{len(EXPECTED | alone)} peers came out as they must")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
