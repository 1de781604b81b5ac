#!/usr/bin/env python3
"""The page of a run in a real browser: what a person would click has its effect, and nothing is said on the console.

    tests/page/run.py [--lockstorm PATH] [--book FOLDER] [--scoreboard FILE.html] [--screenshots FOLDER]

The browser is Debian's chromium, driven by playwright-core from npm (into target/page/). It gets pages that `lockstorm run --report`
writes, and a folder of claims that `lockstorm claims --report` does, from the disk: they have all they need in them. The book that
book/build.py has made and the page of `lockstorm scoreboard` are tried as well where they are named.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
# Runs that between them have what a page shows: a witness, messages that are lost, masters that change, what Sentinels
# and nodes of a cluster say, many nodes and clocks that differ.
PAGES = {
    "failover": ["single/async_failover.toml", "--seed", "0"],
    "redlock": ["redlock/clock_jump.toml", "--seed", "0"],
    "sentinel": ["sentinel/split_brain.toml", "--seed", "0"],
    "cluster": ["cluster/crash_of_master.toml", "--seed", "0"],
    "storm": ["storm/watchdog.toml", "--seed", "0"],
    # A run of a sweep, with the pictures of all of them: a heat map, and how long holds survived.
    "sweep": ["redlock/jump_and_latency.toml", "--seeds", "0..5"],
}
# Claims whose pages are tried together with the list that leads to them: one that is violated, one with a boundary, and one of which much is
# measured.
CLAIMS = ["S11", "R1", "RL2"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstorm", type=Path, help="a built lockstorm; without it, one is built in release")
    parser.add_argument("--book", type=Path, help="the folder of a book that is built: a page is shown in it")
    parser.add_argument("--scoreboard", type=Path, help="the page of a scoreboard")
    parser.add_argument("--screenshots", type=Path, help="where to leave pictures of what was seen; target/page/screenshots without it")
    arguments = parser.parse_args()
    chromium = shutil.which("chromium")
    if not chromium:
        sys.exit("chromium is not on the PATH, and a page cannot be tried without a browser")
    lockstorm = arguments.lockstorm
    if lockstorm is None:
        subprocess.run(["cargo", "build", "--release", "--quiet", "--bin", "lockstorm"], cwd=ROOT, check=True)
        lockstorm = TARGET / "release" / "lockstorm"
    work = TARGET / "page"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(HERE, work)
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=work, check=True, stdout=subprocess.DEVNULL)
    for name, what in PAGES.items():
        # The verdicts are not what is tried here; a violation that is expected has a witness.
        made = subprocess.run([lockstorm.resolve(), "run", *what, "--report", work / f"{name}.html"], capture_output=True, text=True)
        if made.returncode not in (0, 1, 2):
            sys.exit(made.stderr)
    claims = [lockstorm.resolve(), "claims", *CLAIMS, "--report", work / "site"]
    subprocess.run(claims, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    screenshots = (arguments.screenshots or work / "screenshots").resolve()
    screenshots.mkdir(parents=True, exist_ok=True)
    others = []
    if arguments.book:
        shutil.copytree(arguments.book, work / "book")
        others.append("book/page")
    if arguments.scoreboard:
        shutil.copy(arguments.scoreboard, work / "scoreboard.html")
        others.append("scoreboard")
    suite = ["node", "suite.mjs", chromium, str(screenshots), *PAGES, "site/index", *others]
    sys.exit(subprocess.run(suite, cwd=work, timeout=300).returncode)


if __name__ == "__main__":
    main()
