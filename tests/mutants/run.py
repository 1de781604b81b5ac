#!/usr/bin/env python3
"""Mutation tests: which small mistakes in what decides a verdict, and in our Lua scripts, does no test notice?

    tests/mutants/run.py --scripts                 every mutant of the scripts
    tests/mutants/run.py --sample 600 --seed 1     so many of the Rust code, drawn at random
    tests/mutants/run.py --shard 2/8               the second of eight parts of all of it
    tests/mutants/run.py --only client/src/wait    those whose name has this

One build holds all mutants: in a copy of the workspace each is a branch on a switch that is read at run time. Each test runs
once alone, to learn which mutants it reaches; then each mutant is tried with the tests that reach it, the quick ones first, until
one fails. The build and what came out are kept, so that a run can be ended and begun again: `--fresh` builds the sources as they
are now, `--again` repeats those mutants alone that nothing noticed. A mutant is known by its change, wherever its line has moved to.

The mutants of the Rust code are those of `cargo mutants --list` (`cargo install --locked cargo-mutants`), which reads
`.cargo/mutants.toml`. Those that nothing can notice stand in `survivors.toml` with the reason. Ends with 1 if another one survives.
"""

import argparse
import functools
import hashlib
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
WORK = TARGET / "mutation"
# As they were when the run began: others may change the working tree meanwhile.
SOURCES = WORK / "sources"
TREE = WORK / "tree"
CRATES = {"lockstorm-world": "world", "lockstorm-sim": "sim", "lockstorm-client": "client", "lockstorm": "scenarios"}
# They read the sources, which are not as they should be in the copy; compare whole runs for minutes; or measure.
LEFT_OUT = {"tidy", "bench", "determinism", "engines", "pace"}
# So many seconds of tests are run by one process.
CHUNK = 2.0
# The simulator is built with little optimization for tests, the checkers with none. Here each test is run hundreds of times.
CARGO = ["cargo", "--config", "profile.dev.package.lockstorm.opt-level=1", "--config", "profile.dev.debug=false"]


def run(command, **options):
    return subprocess.run(command, check=True, **options)


def output(command, **options):
    return run(command, stdout=subprocess.PIPE, text=True, **options).stdout


def saved(name, value=None):
    path = WORK / name
    if value is not None:
        path.write_text(json.dumps(value))
    return json.loads(path.read_text())


def copy_sources():
    shutil.rmtree(SOURCES, ignore_errors=True)
    files = output(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT).splitlines()
    for file in files:
        if (ROOT / file).is_file() and not file.startswith("tests/mutants/"):
            (SOURCES / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, SOURCES / file)


# ---- the mutants

def key_of(mutant):
    """The same for the same change of the same line, wherever the line has moved to."""
    changed = [line for line in mutant["diff"].splitlines() if line[:1] in "+-"]
    change = re.sub(r":\d+:\d+: ", ": ", mutant["name"])
    return hashlib.sha256("\n".join([change, *changed]).encode()).hexdigest()[:16]


def list_mutants(tool):
    """Every mutant with a number: first those of the scripts, then those of the Rust code."""
    scripts = sorted(str(path.relative_to(SOURCES)) for path in SOURCES.glob("client/src/**/*.lua"))
    mutants = []
    for file, mistakes in json.loads(output([tool, "scripts", *scripts], cwd=SOURCES)).items():
        lines = (SOURCES / file).read_text().splitlines()
        for mistake in mistakes:
            before = lines[mistake["number"] - 1].strip()
            name = f"{file}:{mistake['number']}:1: {before} => {mistake['line']}"
            mutants.append({"name": name, "file": file, "genre": "Script", "text": mistake["text"],
                            "diff": f"-{before}\n+{mistake['line']}"})
    if not shutil.which("cargo-mutants"):
        sys.exit("cargo-mutants is not installed: cargo install --locked cargo-mutants")
    mutants += json.loads(output(["cargo", "mutants", "--workspace", "--list", "--json"], cwd=SOURCES))
    seen = defaultdict(int)
    for number, mutant in enumerate(mutants, 1):
        mutant["id"] = number
        key = key_of(mutant)
        seen[key] += 1
        mutant["key"] = f"{key}.{seen[key]}"
    return mutants


# ---- one build with all of them

def write_tree(tool, mutants, dropped):
    """Writes the copy; a file that is as it was keeps its time, so that little is built again. Where each branch is."""
    staging = WORK / "staging"
    shutil.rmtree(staging, ignore_errors=True)
    shutil.copytree(SOURCES, staging)
    # Where a function returns one type that has no name, a branch cannot return another one.
    rust = [one for one in mutants if one["genre"] != "Script" and one["id"] not in dropped
            and not (one["genre"] == "FnValue" and "impl " in one["function"]["return_type"])]
    branches = json.loads(output([tool, "schemata", staging], input=json.dumps(rust)))
    scripts = sorted({one["file"] for one in mutants if one["genre"] == "Script"})
    table = ", ".join(f'("{file}", include_str!("{TREE / file}"))' for file in scripts)
    switch = (HERE / "src/switch.rs").read_text().replace("/* scripts */", table)
    for folder in CRATES.values():
        (staging / folder / "src/mutant_switch.rs").write_text(switch)
        with open(staging / folder / "src/lib.rs", "a") as lib:
            lib.write("\n#[doc(hidden)]\npub mod mutant_switch;\n")
    head = "    pub(crate) fn new(text: &'static str) -> Self {\n"
    inserted = "        let text = crate::mutant_switch::script(text).map_or(text, |text| text.leak());\n"
    after = edit(staging / "client/src/script.rs", head, head + inserted)
    for branch in branches.get("client/src/script.rs", []):
        for place in ("start", "end"):
            branch[place] += len(inserted) if branch[place] > after else 0
    edit(staging / "client/tests/client/golden.rs", 'redis::cmd("EVAL").arg(script)',
         'redis::cmd("EVAL").arg(lockstorm_client::mutant_switch::script(script).as_deref().unwrap_or(script))')
    # A mutant may be what the compiler sees through: it is tried all the same.
    allowed = "".join(f'{lint} = "allow"\n' for lint in ("warnings", "arithmetic_overflow", "unconditional_panic"))
    edit(staging / "Cargo.toml", "[workspace.lints.rust]\n", "[workspace.lints.rust]\n" + allowed)
    sync(staging, TREE)
    return branches


def edit(path, old, new):
    """Replaces what is there once. At which byte it began."""
    text = path.read_text()
    if text.count(old) != 1:
        sys.exit(f"{path}: {old!r} is not there once")
    path.write_text(text.replace(old, new))
    return len(text[:text.index(old)].encode())


def sync(source, target):
    wanted = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
    for path in [path for path in target.rglob("*") if path.is_file() or path.is_symlink()]:
        # Without CARGO_TARGET_DIR what was built is there as well. It stays, or all would be built again.
        if path.relative_to(target) not in wanted and path.relative_to(target).parts[0] != "target":
            path.unlink()
    for file in wanted:
        old, new = target / file, source / file
        if not old.is_file() or old.read_bytes() != new.read_bytes():
            old.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(new, old)
            shutil.copymode(new, old)


def spans_of(message):
    for span in message["spans"]:
        yield span
        while span.get("expansion"):
            span = span["expansion"]["span"]
            yield span
    for child in message["children"]:
        yield from spans_of(child)


def blamed(message, branches):
    """The mutants whose branches an error of the compiler is about."""
    spans = list(spans_of(message))
    primary = [span for span in spans if span["is_primary"]] or spans
    for some in (primary, spans):
        within = {one["id"] for span in some for one in branches.get(span["file_name"], [])
                  if one["start"] <= span["byte_start"] and span["byte_end"] <= one["end"]}
        if within:
            return within
    # Patterns that are missing, as an arm with a guard counts for nothing: up to where the compiler would add one.
    start, end = min(span["byte_start"] for span in primary), max(span["byte_end"] for span in spans)
    return {one["id"] for span in primary for one in branches.get(span["file_name"], [])
            if start <= one["start"] and one["end"] <= end}


def build(tool, mutants):
    """Leaves out what does not compile, until the rest does, and builds the tests. Returns for each mutant that is left out the
    code of the error, and the test binaries, each with the folder it runs in."""
    known = saved("dropped.json") if (WORK / "dropped.json").exists() else {}
    dropped = {one["id"]: known[one["key"]] for one in mutants if one["key"] in known}
    # To check is quicker than to build, but some errors come with the code only.
    packages = [part for name in CRATES for part in ("-p", name)]
    commands = [] if known else [["check", "--lib", "--keep-going", *packages]]
    commands.append(["test", "--workspace", "--lib", *test_names(), "--no-run"])
    while True:
        branches = write_tree(tool, mutants, dropped)
        listed = {one["id"] for of_file in branches.values() for one in of_file}
        for one in mutants:
            if one["genre"] != "Script" and one["id"] not in listed:
                dropped.setdefault(one["id"], "no branch")
        command = [*CARGO, *commands[0], "--message-format=json"]
        done = subprocess.run(command, cwd=TREE, stdout=subprocess.PIPE, text=True)
        said = [json.loads(line) for line in done.stdout.splitlines()]
        new, errors = {}, []
        for message in (one["message"] for one in said if one["reason"] == "compiler-message"):
            if message["level"] == "error":
                errors.append(message["rendered"])
                code = (message["code"] or {}).get("code") or message["message"]
                new.update({mutant: code for mutant in blamed(message, branches)})
        dropped.update(new)
        saved("dropped.json", {one["key"]: dropped[one["id"]] for one in mutants if one["id"] in dropped})
        print(f"{len(dropped)} mutants left out, {len(new)} of them now", flush=True)
        if done.returncode != 0 and not new:
            sys.exit("the copy does not compile, and no mutant is to blame:\n" + "\n".join(errors))
        if done.returncode == 0 and len(commands) == 1:
            tests = [one for one in said if one["reason"] == "compiler-artifact" and one.get("executable")]
            return dropped, {one["executable"]: str(Path(one["manifest_path"]).parent)
                             for one in tests if one["profile"]["test"]}
        if done.returncode == 0:
            commands.pop(0)


def test_names():
    metadata = json.loads(output(["cargo", "metadata", "--no-deps", "--format-version=1"], cwd=SOURCES))
    targets = [target for package in metadata["packages"] for target in package["targets"]]
    names = [one["name"] for one in targets if one["kind"] == ["test"] and one["name"] not in LEFT_OUT]
    return [part for name in names for part in ("--test", name)]


# ---- which tests reach which mutants

def limits():
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def play(binary, folder, tests, limit, **environment):
    """Runs some tests of a binary. Whether they pass: None when their time is over."""
    command = [binary, "--exact", "--test-threads=1", *tests]
    environment = {**os.environ, "CARGO_MANIFEST_DIR": folder, "INSTA_UPDATE": "no", "INSTA_FORCE_PASS": "0",
                   **environment}
    if Path(binary).name.startswith("parity-"):
        # The simulator is what is mutated: where no redis-server is on the PATH the transcripts are played on it alone.
        environment["PATH"] = ""
    process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                               preexec_fn=limits)
    try:
        said, _ = process.communicate(timeout=limit)
        return process.returncode == 0, said.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def names_of(binary, folder):
    listed = output([binary, "--list"], cwd=folder)
    return [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]


def reach(binaries, jobs):
    """Each test alone, with how long it takes and what it reaches. Tests that fail by themselves notice nothing."""
    def one(case):
        number, (binary, folder, test) = case
        file = WORK / f"reached.{number}"
        begun = time.monotonic()
        passed, said = play(binary, folder, [test], 600, LOCKSTORM_MUTANTS_REACHED=str(file))
        seconds = time.monotonic() - begun
        reached = file.read_text().split() if file.exists() else []
        file.unlink(missing_ok=True)
        if not passed:
            print(f"left out, as it fails without any mutant: {test} of {binary}\n{said[-600:]}", flush=True)
        return {"binary": binary, "folder": folder, "test": test, "seconds": seconds,
                "passed": bool(passed), "reached": reached}

    cases = [(binary, folder, test) for binary, folder in binaries.items() for test in names_of(binary, folder)]
    print(f"{len(cases)} tests in {len(binaries)} binaries", flush=True)
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, enumerate(cases)))


# ---- one mutant

@functools.cache
def takes_several(binary):
    """Whether a test binary can be given the names of several tests. Those of libtest-mimic cannot."""
    return subprocess.run([binary, "--list", "--exact", "a", "b"], capture_output=True).returncode == 0


def chunks(tests):
    """Tests in groups of which each is one process: the quick ones first."""
    by_binary = defaultdict(list)
    for test in sorted(tests, key=lambda test: test["seconds"]):
        by_binary[test["binary"]].append(test)
    groups = []
    for of_binary in by_binary.values():
        group, seconds = [], 0.0
        for test in of_binary:
            if group and (seconds + test["seconds"] > CHUNK or not takes_several(test["binary"])):
                groups.append((seconds, group))
                group, seconds = [], 0.0
            group.append(test)
            seconds += test["seconds"]
        groups.append((seconds, group))
    return sorted(groups, key=lambda group: group[0])


def try_mutant(mutant, tests):
    """What notices a mutant. A failure counts when it comes again, for the few tests that need real time."""
    environment = {"LOCKSTORM_MUTANT": str(mutant["id"])}
    if mutant["genre"] == "Script":
        folder = WORK / "scripts" / str(mutant["id"])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "find").write_text((TREE / mutant["file"]).read_text())
        (folder / "replace").write_text(mutant["text"])
        environment = {"LOCKSTORM_MUTANT_SCRIPT": str(folder)}
    for seconds, group in chunks(tests):
        names = [test["test"] for test in group]
        binary, folder = group[0]["binary"], group[0]["folder"]
        for _ in range(2):
            passed, said = play(binary, folder, names, 30 + 10 * seconds, **environment)
            if passed or passed is None:
                break
        if not passed:
            failed = re.findall(r"^test (.*?) +\.\.\. FAILED", said, re.M)
            first = "no end" if passed is None else (failed or ["it ends early"])[0]
            return {"noticed": True, "by": f"{Path(binary).name.rsplit('-', 1)[0]}: {first}"}
    return {"noticed": False, "by": f"{len(tests)} tests reach it"}


# ---- the score

def wilson(noticed, tried):
    """The 95 % interval of Wilson."""
    if tried == 0:
        return 0.0, 1.0
    z, share = 1.96, noticed / tried
    middle = (share + z * z / (2 * tried)) / (1 + z * z / tried)
    half = z / (1 + z * z / tried) * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def folder_of(mutant):
    parts = mutant["file"].split("/")
    return "client/src/**/*.lua" if mutant["genre"] == "Script" else "/".join(parts[:3]).removesuffix(".rs")


def reason_for(mutant, survivors):
    """Why nothing can notice a mutant, if that is known. Of several with the same change in one function `line` says which."""
    changed = "\n".join(line for line in mutant["diff"].splitlines() if line.startswith("+"))
    of_mutant = (one for one in survivors if (one["file"], one["change"]) == (mutant["file"], change_of(mutant)))
    return next((one["reason"] for one in of_mutant if one.get("line", "") in changed), None)


def report(mutants, dropped, results):
    survivors = tomllib.loads((HERE / "survivors.toml").read_text()).get("survivor", [])
    listed = {(one["file"], change_of(one)) for one in mutants}
    stale = [one for one in survivors if (one["file"], one["change"]) not in listed]
    for one in stale:
        print(f"\nsurvivors.toml: there is no such mutant: {one['file']}: {one['change']}")
    tried = [one for one in mutants if one["key"] in results]
    viable = [one for one in mutants if one["id"] not in dropped]
    left, wrong = [], []
    for one in tried:
        reason = reason_for(one, survivors)
        if not results[one["key"]]["noticed"]:
            print(f"\nNOT NOTICED: {one['name']}\n  {results[one['key']]['by']}; {reason or 'no reason is given'}")
            print(one["diff"])
            if not reason:
                left.append(one)
        elif reason:
            wrong.append(one)
            print(f"\nNOTICED after all: {one['name']}\n  {results[one['key']]['by']}")
    rows = defaultdict(list)
    for one in tried:
        for row in ("scripts" if one["genre"] == "Script" else "Rust", folder_of(one)):
            rows[row].append(results[one["key"]]["noticed"])
    print(f"\n{len(mutants)} mutants listed, {len(viable)} viable, {len(tried)} tried")
    for row, noticed in sorted(rows.items()):
        low, high = wilson(sum(noticed), len(noticed))
        print(f"{row:40} {sum(noticed):5} of {len(noticed):5} noticed: "
              f"{100 * sum(noticed) / len(noticed):5.1f} % ({100 * low:.1f} to {100 * high:.1f})")
    return not left and not wrong and not stale


def change_of(mutant):
    return mutant["name"].split(": ", 1)[1]


def shard(text):
    """`2/8`: the second of eight."""
    number, of = (int(part) for part in text.split("/"))
    if not 1 <= number <= of:
        raise ValueError(text)
    return number, of


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--scripts", action="store_true", help="the mutants of the scripts")
    options.add_argument("--sample", type=int, help="so many, drawn at random")
    options.add_argument("--seed", type=int, default=0, help="of the sample")
    options.add_argument("--shard", type=shard, default=(1, 1), metavar="K/N", help="the K-th of N parts of them, for N machines or nights")
    options.add_argument("--only", default="", help="those whose name has this")
    options.add_argument("--fresh", action="store_true", help="build the sources as they are now")
    options.add_argument("--again", action="store_true", help="those alone that nothing noticed so far")
    options.add_argument("--jobs", type=int, default=1, help="so many at a time")
    options.add_argument("--report", action="store_true", help="what came out so far, and no more")
    options = options.parse_args()

    WORK.mkdir(parents=True, exist_ok=True)
    TREE.mkdir(exist_ok=True)
    results = {}
    if (WORK / "results.jsonl").exists():
        for line in (WORK / "results.jsonl").read_text().splitlines():
            result = json.loads(line)
            results[result["key"]] = result
    if options.report:
        state = saved("state.json")
        sys.exit(0 if report(state["mutants"], {int(id) for id in state["dropped"]}, results) else 1)

    state = saved("state.json") if (WORK / "state.json").exists() else None
    if options.fresh or not state:
        run(["cargo", "build", "--quiet", "--manifest-path", HERE / "Cargo.toml", "--target-dir", WORK / "tool"])
        tool = WORK / "tool/debug/lockstorm-mutants"
        copy_sources()
        mutants = list_mutants(tool)
        print(f"{len(mutants)} mutants", flush=True)
        dropped, binaries = build(tool, mutants)
        tests = reach(binaries, options.jobs)
        state = {"mutants": mutants, "dropped": dropped, "tests": tests}
        saved("state.json", state)
    mutants, dropped = state["mutants"], {int(id) for id in state["dropped"]}
    reaching = defaultdict(list)
    for test in state["tests"]:
        if test["passed"]:
            for what in test["reached"]:
                reaching[what].append(test)

    chosen = [one for one in mutants if (one["genre"] == "Script") == options.scripts and one["id"] not in dropped]
    chosen = [one for one in chosen if options.only in one["name"]]
    random.Random(options.seed).shuffle(chosen)
    chosen = chosen[:options.sample]
    number, of = options.shard
    chosen = chosen[number - 1::of]
    if options.again:
        todo = [one for one in chosen if not results.get(one["key"], {"noticed": True})["noticed"]]
    else:
        todo = [one for one in chosen if one["key"] not in results]
    print(f"{len(chosen)} mutants chosen, {len(todo)} to try", flush=True)

    def attempt(mutant):
        reached = mutant["file"] if mutant["genre"] == "Script" else str(mutant["id"])
        begun = time.monotonic()
        result = {"key": mutant["key"], "name": mutant["name"], **try_mutant(mutant, reaching[reached])}
        result["seconds"] = round(time.monotonic() - begun, 1)
        return result

    with ThreadPoolExecutor(options.jobs) as pool, open(WORK / "results.jsonl", "a") as log:
        for done in as_completed([pool.submit(attempt, mutant) for mutant in todo]):
            result = done.result()
            results[result["key"]] = result
            log.write(json.dumps(result) + "\n")
            log.flush()
    chosen_keys = {one["key"] for one in chosen}
    results = {key: result for key, result in results.items() if key in chosen_keys}
    sys.exit(0 if report(mutants, dropped, results) else 1)


if __name__ == "__main__":
    main()
