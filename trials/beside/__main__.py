#!/usr/bin/env python3
"""Puts locks of other systems on trial beside those of Redis, by what their clients believe and by
the writes that arrive.

    python3 trials/beside [--only ROW,..] [--claims T1,..] [--seeds 0..5] [--out .]

Each row starts its server, plays each claim with each seed, and has `lockstorm check` judge the
histories. It writes BESIDE.md, and the histories to target/trials/beside. With --short, two systems
that start quickly and a lock that is broken on purpose are tried for some claims, and what must
come out is compared.
"""

import argparse
import asyncio
import datetime
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

import board as boards
from claims import CLAIMS
from peer import Gone
from run import Run, cost
from systems import CONTROLS, ROOT, ROWS, TARGET

# An undecided run, or one that was given up, is played again.
PLAYS = 3
SHORT = {
    "redis-lockstorm": {"T4": "holds", "L3": "violated", "T5m": "holds"},
    "postgres": {"T4": "holds", "L3": "holds", "T5m": "violated"},
    "bare-del": {"T2": "violated"},
}
NOT_HAD = {
    "key": "mongodb", "system": "MongoDB", "lock": "`findAndModify`", "promises": "–", "cells": {}, "cost": [],
    "not_tried": {"all": "no server: neither Debian nor a registry of packages that `trials/setup` uses has one."},
}


def not_tried(row, claim, chosen):
    """The reason why a claim is not tried, or None."""
    if row.control and claim.key not in row.control:
        return "it is not its mistake"
    if claim.failover and row.failover is None:
        return row.no_failover
    if claim.renewed and not row.renewed:
        return "it has a lease that only the application extends"
    return None if claim.key in chosen else "it was not chosen"


async def play(row, claim, seed, version, server, options, limit):
    """The cells of one seed, with the findings of the last play."""
    path = options.histories / f"{row.key}-{claim.key}-{seed}.jsonl"
    again = f"python3 trials/beside --only {row.key} --claims {claim.key} --seeds {seed}..{seed + 1}"
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    for attempt in range(PLAYS):
        async with limit:
            run = Run(row, claim, seed, version, server, again)
            try:
                findings, freed = await run.play(options.lockstorm, path)
                cells = boards.cells_of(claim, findings)
                has_token = any(app.peer.can("token") for app in run.apps.values())
                if not has_token:
                    cells.pop("L4", None)
            except Exception as error:
                # One run that cannot be played must not end all others.
                if not isinstance(error, (Gone, OSError, asyncio.TimeoutError)):
                    traceback.print_exc()
                cells, freed = {claim.key: (boards.UNDECIDED, [f"it was given up: {type(error).__name__}: {error}"])}, None
        if cells[claim.key][0] != boards.UNDECIDED:
            break
    print(f"{row.key} {claim.key} seed {seed}:", ", ".join(f"{key} {outcome}" for key, (outcome, _) in cells.items()), flush=True)
    more = {"seed": seed, "freed": freed, "again": again, "history": str(shown)}
    return {key: {"outcome": outcome, "said": said, **more} for key, (outcome, said) in cells.items()}


async def cost_of(row, options):
    """The sorted milliseconds of acquisitions from a server of its own."""
    server = row.server()
    try:
        await server.start()
        return await cost(row, server, options.rounds)
    finally:
        server.end()


async def column(row, took, chosen, options, limit):
    server = row.server()
    try:
        await server.start()
        version = server.version()
        tried = [claim for claim in CLAIMS if not_tried(row, claim, chosen) is None]
        seeds = range(*options.seeds)[:1] if row.control else range(*options.seeds)
        plays = [play(row, claim, seed, version, server, options, limit) for claim in tried for seed in seeds]
        cells = {}
        for played in await asyncio.gather(*plays):
            for key, cell in played.items():
                cells.setdefault(key, {"plays": []})["plays"].append(cell)
        reasons = {claim.key: why for claim in CLAIMS if claim.key in chosen and (why := not_tried(row, claim, chosen))}
        if "T4" in cells and "L4" not in cells:
            reasons["L4"] = "it has no fencing token"
        return {"key": row.key, "system": version, "lock": await called(row), "promises": row.promises, "cells": cells,
                "cost": took, "not_tried": reasons}
    finally:
        server.end()


async def called(row):
    """The lock with the versions of its library and driver, as its peer says them."""
    from peer import Peer

    peer = await Peer.start(row.command, ROOT, lambda said: None)
    hello = peer.hello
    await peer.end()
    return ", ".join(word for word in (f"{row.lock} {hello['version']}".strip(), hello.get("driver")) if word)


async def whole(rows, chosen, options):
    limit = asyncio.Semaphore(options.jobs)
    if options.short:
        return await asyncio.gather(*(column(row, [], chosen & set(SHORT[row.key]), options, limit) for row in rows))
    costs = {}
    for row in rows:
        # One after the other, and before all claims: the cost of one must not be that of its neighbours.
        costs[row.key] = [] if row.control else await cost_of(row, options)
    print("the costs of all rows are measured", flush=True)
    columns = []
    for row in rows:
        columns.append(await column(row, costs[row.key], chosen, options, limit))
        options.save(columns)
    return columns


def compared(columns, chosen, short):
    """What was found otherwise than it must be: by --short, or of a control."""
    wrong, controls = [], {row.key: {key: boards.VIOLATED for key in row.control if key in chosen} for row in CONTROLS}
    for one in columns:
        musts = SHORT[one["key"]] if short else controls.get(one["key"], {})
        for key, must in musts.items():
            for cell in one["cells"].get(key, {"plays": [{"outcome": "not tried", "said": []}]})["plays"]:
                if cell["outcome"] != must:
                    wrong.append(f"{one['key']}, {key}: {cell['outcome']}, not {must}: {' '.join(cell['said'])}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstorm", type=Path, default=ROOT / "target/release/lockstorm", help="a built lockstorm (%(default)s)")
    parser.add_argument("--only", help="rows: " + ",".join(row.key for row in ROWS))
    parser.add_argument("--claims", help="claims: " + ",".join(claim.key for claim in CLAIMS))
    parser.add_argument("--seeds", default="0..5", help="range of seeds, without its end (%(default)s)")
    parser.add_argument("--rounds", type=int, default=400, help="acquisitions whose cost is measured (%(default)s)")
    parser.add_argument("--jobs", type=int, default=3, help="runs at a time (%(default)s)")
    parser.add_argument("--out", type=Path, help="the folder for BESIDE.md; without it, the table is printed")
    parser.add_argument("--keep", action="store_true", help="keep the rows of beside.json, beside the histories, that are not tried")
    parser.add_argument("--no-setup", dest="setup", action="store_false", help="trials/setup has run")
    parser.add_argument("--short", action="store_true", help="two systems, a broken lock and some claims, compared with what must come out")
    options = parser.parse_args()
    if options.short:
        options.only, options.claims, options.seeds, options.jobs = ",".join(SHORT), "T2,T4,T5m", "0..1", 5
    words = options.seeds
    options.seeds = tuple(int(end) for end in options.seeds.split(".."))
    options.lockstorm = options.lockstorm.resolve()
    options.histories = TARGET / "beside"
    options.histories.mkdir(parents=True, exist_ok=True)
    rows = [row for row in [*ROWS, *CONTROLS] if not options.only or row.key in options.only.split(",")]
    chosen = set(options.claims.split(",")) if options.claims else {claim.key for claim in CLAIMS}
    if options.setup:
        for language in dict.fromkeys(each for row in rows for each in row.setup):
            subprocess.run([ROOT / "trials/setup", language], check=True)
    kept = {}
    results = options.histories / "beside.json"
    if options.keep:
        before = json.loads(results.read_text())
        kept = {one["key"]: one for one in before["rows"] + before["controls"]}

    def save(columns):
        found = kept | {one["key"]: one for one in columns}
        board = {
            "day": str(datetime.date.today()), "seeds": words, "cores": os.cpu_count(), "kept": bool(kept),
            "rows": [*(found[row.key] for row in ROWS if row.key in found), NOT_HAD],
            "controls": [found[row.key] for row in CONTROLS if row.key in found]}
        if options.out:
            results.write_text(json.dumps(board, indent=1) + "\n")
            (options.out / "BESIDE.md").write_text(boards.page(board))
        return board

    options.save = save
    columns = asyncio.run(whole(rows, chosen, options))
    if not options.out and not options.short:
        print(boards.page(save(columns)))
    wrong = compared(columns, chosen, options.short)
    print("\n".join(wrong) or f"{len(columns)} locks were tried; those with a required outcome have it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
