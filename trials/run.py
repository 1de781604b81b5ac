#!/usr/bin/env python3
"""A short scoreboard with what must come out of it: our client and redis-py hold, and two broken locks are found.

    trials/run.py [--lockstorm PATH] [--out FOLDER]

A library that tells its user neither a deadline nor a loss lets a paused holder believe too long (T4), and every lock on one node is
lost by a failover that loses its key (T11).
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
FILES = ["late_release", "paused_holder_knows", "crashed_holder", "extend_after_loss"]
# What each must come to, by claim.
EXPECTED = {
    "lockstorm-client": {"T2": "holds", "T4": "holds", "T5": "holds", "T8": "holds"},
    "redis-py": {"T2": "holds", "T4": "violated", "T5": "holds", "T8": "holds"},
    "bare-del": {"T2": "violated", "T4": "violated", "T5": "holds", "T8": "holds"},
    "blind-extend": {"T2": "holds", "T4": "violated", "T5": "holds", "T8": "violated"},
}


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
    lines = (ROOT / "trials/peers.toml").read_text().splitlines()
    listed.write_text("\n".join(line for line in lines if not line.startswith("control")))
    files = [f"trial/{name}.toml" for name in FILES]
    only = ",".join(EXPECTED)
    command = [lockstorm.resolve(), "scoreboard", listed, *files, "--only", only, "--out", out]
    subprocess.run(command, cwd=ROOT, check=True)
    board = json.loads((out / "scoreboard.json").read_text())
    ids = [claim["id"] for claim in board["claims"]]
    wrong = []
    # In the order of the list, as it was asked for.
    for (name, expected), tried in zip(EXPECTED.items(), board["libraries"], strict=True):
        for claim, cell in zip(ids, tried["cells"], strict=True):
            if cell["came_out"] != expected[claim]:
                wrong.append(f"{name}, {claim}: {cell['came_out']}, not {expected[claim]}: {' '.join(cell['evidence'])}")
    print("\n".join(wrong) or f"{len(EXPECTED)} peers came out as they must, for {' '.join(ids)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
