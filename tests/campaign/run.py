#!/usr/bin/env python3
"""Campaigns on the engines that they are for: what is merged must be what one process writes, byte for byte.

    tests/campaign/run.py [ENGINE ...] [--lockstorm PATH] [--files FILE ...] [--seeds A..B] [--shard-runs N]
                          [--patience SECONDS]

`local` kills one of several processes that work on the same folder. `slurm` starts a private Slurm of one machine with several
slots (Debian's packages slurmctld, slurmd, slurm-client and munge), submits the array job that lockstorm writes, kills one of its
workers in the middle, and submits it again. `bucket` does as `local` with a bucket in the place of the folder, on a server that speaks
S3's protocol (moto). `kubernetes` holds the manifests to the schemas of several versions (kubernetes-validate). `duckdb` asks the results of
runs what the book asks. `matrix` holds the book's files for CI systems to their schemas (check-jsonschema) and does what
they have lockstorm do. `nextest` runs tests in slices, as jobs of a matrix do, if cargo-nextest is installed.
"""

import argparse
import getpass
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Debian's daemons are where root looks for them.
os.environ["PATH"] += ":/usr/sbin"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
# How long anything may take on a machine that is busy with something else; `--patience` for more runs than the tests have.
PATIENCE_S = 900
SLOTS, TASKS, SLICES = 4, 8, 3
# The oldest and the newest version of Kubernetes that the manifest is held to.
KUBERNETES = ["1.29", "1.37"]


class Failure(Exception):
    """Something a person should read; no stack trace helps."""


def run(command, codes=(0,), **more):
    """What a command prints, which must end with one of these codes."""
    command = [str(word) for word in command]
    try:
        ran = subprocess.run(command, text=True, capture_output=True, timeout=PATIENCE_S, **more)
    except FileNotFoundError as error:
        raise Failure(f"{command[0]} is not installed") from error
    if ran.returncode not in codes:
        raise Failure(f"{' '.join(command)} ended with {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def until(what, happens, pause=0.02):
    """What `happens` returns, as soon as it returns something."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if found := happens():
            return found
        time.sleep(pause)
    raise Failure(f"{what}: not after {PATIENCE_S} s")


class Trial:
    """One set of runs, and the table that one process writes for it."""

    def __init__(self, lockstorm, folder, files, seeds, shard_runs):
        self.lockstorm, self.folder, self.shard_runs = lockstorm, folder, shard_runs
        self.what = [*files, "--seeds", seeds]
        self.expected = folder / "one.csv"
        begun = time.monotonic()
        # 1 and 2 are verdicts of runs, which merging must return as well.
        command = [lockstorm, "run", *self.what, "--results", self.expected]
        ran = subprocess.run([str(word) for word in command], text=True, capture_output=True, timeout=PATIENCE_S)
        if ran.returncode not in (0, 1, 2):
            raise Failure(ran.stderr)
        self.code = ran.returncode
        print(f"one process: {ran.stdout.splitlines()[-1]} [{time.monotonic() - begun:.1f} s]", flush=True)

    def plan(self, name):
        """A new folder with this campaign."""
        folder = self.folder / name
        self.plan_at(folder)
        return folder

    def plan_at(self, place):
        run([self.lockstorm, "campaign", "plan", *self.what, "--out", place, "--shard-runs", self.shard_runs])

    def missing(self, place):
        """What is said of the missing shards; nothing once all are finished."""
        said = run([self.lockstorm, "campaign", "status", place], codes=(0, 2))
        found = re.search(r"missing: (.*)", said)
        return found[1] if found else ""

    def kill_one(self, place):
        """Kills a worker that has finished a shard, and has one before it. Returns its part."""

        def victim():
            for pid, part in workers(place):
                number, of = map(int, part.split("/"))
                # A stopped process finishes nothing between the look at its shards and its end.
                if not send(pid, signal.SIGSTOP):
                    continue
                shards = range(number, self.shards(place), of)
                done = len(finished(place).intersection(shards))
                if 0 < done < len(shards) and send(pid, signal.SIGKILL):
                    return part
                send(pid, signal.SIGCONT)
            return None

        return until("a worker in the middle of its shards", victim)

    def shards(self, place):
        said = run([self.lockstorm, "campaign", "status", place], codes=(0, 2))
        return int(re.search(r"of (\d+) shards", said)[1])

    def compare(self, name, place, results):
        """Merges, and compares with what one process has written."""
        begun = time.monotonic()
        run([self.lockstorm, "campaign", "merge", place, "--results", results], codes=(self.code,))
        merged, expected = results.read_bytes(), self.expected.read_bytes()
        if merged != expected:
            raise Failure(f"{name}: what is merged differs from what one process has written")
        rows = merged.count(b"\n") - 1
        print(f"{name}: {rows} runs are the same bytes, merged in {time.monotonic() - begun:.1f} s", flush=True)


def finished(place):
    """The numbers of the shards whose tables are there."""
    if str(place).startswith("s3://"):
        bucket, _, prefix = str(place).removeprefix("s3://").partition("/")
        url = f"{os.environ['AWS_ENDPOINT_URL']}/{bucket}?list-type=2&prefix={prefix}/shards/"
        with urllib.request.urlopen(url, timeout=5) as answer:
            names = re.findall(r"<Key>([^<]*)</Key>", answer.read().decode())
    else:
        names = [path.name for path in (place / "shards").iterdir()]
    return {int(found[1]) for name in names if (found := re.fullmatch(r"(?:.*/)?(\d+)\.csv", name))}


def workers(place):
    """The processes that work on a campaign, with their parts."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if words[1:3] == ["campaign", "work"] and str(place) in words and "--part" in words:
            yield int(process.name), words[words.index("--part") + 1]


def send(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def local(trial):
    folder = trial.plan("local")
    processes(trial, "local", folder)
    trial.compare("local", folder, folder / "results.csv")


def processes(trial, name, place):
    """Several processes work on a campaign, one of which is killed, and one more does what is left."""
    work = [trial.lockstorm, "campaign", "work", place, "--jobs", "1", "--part"]
    with tempfile.TemporaryFile() as said:
        # Two processes have the same part: a shard may be worked on twice at once.
        parts = ["0/2", "1/2", "1/2"]
        started = [subprocess.Popen([*map(str, work), part], stdout=said, stderr=said) for part in parts]
        killed = trial.kill_one(place)
        codes = sorted(process.wait(timeout=PATIENCE_S) for process in started)
        said.seek(0)
        if codes != [-signal.SIGKILL, 0, 0]:
            raise Failure(f"{name}: workers ended with {codes}\n{said.read().decode()}")
    missing = trial.missing(place)
    if bool(missing) != (killed == "0/2"):
        raise Failure(f"{name}: {killed} was killed, and missing is {missing!r}")
    run([trial.lockstorm, "campaign", "work", place])
    print(f"{name}: {killed} was killed, missing were {missing or 'none, as another process had the same part'}", flush=True)


@contextmanager
def bucket_server(folder):
    """A server that speaks S3's protocol, and one bucket in it."""
    [port] = free_ports(1)
    with daemon([venv() / "bin" / "moto_server", "-H", "127.0.0.1", "-p", port], folder / "moto.log") as server:
        url = f"http://127.0.0.1:{port}"

        def is_up():
            if server.poll() is not None:
                raise Failure(f"moto did not start\n{(folder / 'moto.log').read_text()}")
            try:
                urllib.request.urlopen(urllib.request.Request(f"{url}/storms", method="PUT"), timeout=5).close()
                return True
            except OSError:
                return False

        until("a bucket", is_up, pause=0.1)
        os.environ.update(AWS_ENDPOINT_URL=url, AWS_ALLOW_HTTP="true", AWS_REGION="us-east-1", AWS_ACCESS_KEY_ID="nobody",
                          AWS_SECRET_ACCESS_KEY="none")
        yield


def bucket(trial):
    with bucket_server(trial.folder):
        place = "s3://storms/of/the/day"
        trial.plan_at(place)
        # There is one already, and another one is not to be mixed with it.
        run([trial.lockstorm, "campaign", "plan", *trial.what, "--out", place], codes=(64,))
        processes(trial, "bucket", place)
        trial.compare("bucket", place, trial.folder / "bucket.csv")
        # Nothing is left to do, which a worker learns from the bucket alone.
        run([trial.lockstorm, "campaign", "work", place])


@contextmanager
def daemon(command, log, **more):
    """A process that runs until its block is left."""
    with open(log, "ab") as out:
        process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=out, **more)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_ports(count):
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


SLURM = """\
ClusterName=lockstorm
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SchedulerParameters=sched_min_interval=1,batch_sched_delay=0
SchedulerType=sched/builtin
MailProg=/bin/true
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={slots} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@contextmanager
def slurm_of_one_machine(folder):
    """A Slurm of this process's own. Returns the environment for its commands."""
    for made in ["state", "spool"]:
        (folder / made).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    host = socket.gethostname().split(".")[0]
    conf = folder / "slurm.conf"
    conf.write_text(SLURM.format(host=host, ports=free_ports(2), user=getpass.getuser(), folder=folder, slots=SLOTS))
    environment = dict(os.environ, SLURM_CONF=str(conf))
    munge = ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket",
             f"--pid-file={folder}/munged.pid", f"--seed-file={folder}/munged.seed", f"--log-file={folder}/munged.log"]
    with daemon(munge, folder / "munged.out") as munged:
        until("munged", lambda: munged.poll() is not None or (folder / "munge.socket").exists())
        with (
            daemon(["slurmctld", "-D", "-c", "-f", conf], folder / "slurmctld.log", env=environment) as control,
            daemon(["slurmd", "-D", "-c", "-f", conf, "-N", host], folder / "slurmd.log", env=environment) as node,
        ):
            processes = [munged, control, node]

            def is_up():
                if any(process.poll() is not None for process in processes):
                    logs = "".join(path.read_text() for path in sorted(folder.glob("*.log")))
                    raise Failure(f"slurm did not start\n{logs}")
                state = subprocess.run(["sinfo", "-h", "-o", "%t"], env=environment, text=True, capture_output=True)
                return state.stdout.strip() == "idle"

            until("slurm with an idle node", is_up, pause=0.2)
            yield environment


def slurm(trial):
    folder = trial.plan("slurm")
    written = run([trial.lockstorm, "campaign", "run", folder, "--engine", "slurm", "--tasks", TASKS])
    submit = written.splitlines()[0].split()
    # The path of a socket is short, so that the daemons do not live below the target folder.
    with tempfile.TemporaryDirectory(prefix="lockstorm-slurm-") as daemons, \
            slurm_of_one_machine(Path(daemons)) as environment:

        def tasks_left():
            return run(["squeue", "-h", "-r", "-o", "%i %t"], env=environment).split("\n")[:-1]

        run(submit, env=environment)
        most = 0

        def several():
            nonlocal most
            most = max(most, len(list(workers(folder.resolve()))))
            return most == SLOTS

        until(f"{SLOTS} workers at a time", several)
        killed = trial.kill_one(folder.resolve())
        until("the end of the job", lambda: not tasks_left(), pause=0.2)
        missing = trial.missing(folder)
        if not missing:
            logs = "".join(path.read_text() for path in sorted(folder.glob("log-*.txt")))
            raise Failure(f"slurm: {killed} was killed in the middle, and no shard is missing\n{logs}")
        said = run([trial.lockstorm, "campaign", "merge", folder], codes=(64,))
        print(f"slurm: {most} workers at a time, {killed} was killed, missing were {missing}{said}", flush=True)
        run(submit, env=environment)
        until("the end of the second job", lambda: not tasks_left() and not trial.missing(folder), pause=0.2)
    trial.compare("slurm", folder, folder / "results.csv")


def venv():
    """What Python's registry has for these tests, installed once."""
    made = TARGET / "campaign" / "venv"
    if not (made / "installed").exists():
        run([sys.executable, "-m", "venv", made])
        run([made / "bin" / "pip", "install", "-q", "-r", HERE / "requirements.txt"])
        (made / "installed").touch()
    return made


def kubernetes(trial):
    """With the campaign on a volume, and in a bucket whose credentials are in a secret."""
    options = ["--engine", "kubernetes", "--tasks", TASKS, "--image", "registry.example/lockstorm:1"]
    folder = trial.plan("kubernetes")
    run([trial.lockstorm, "campaign", "run", folder, *options, "--claim", "campaign"])
    manifests = {"volume": folder / "kubernetes.json"}
    # It is written to where the command was given, for a bucket is no place for kubectl to read from.
    beside = trial.folder / "beside"
    beside.mkdir()
    with bucket_server(trial.folder):
        place = "s3://storms/of/kubernetes"
        trial.plan_at(place)
        run([trial.lockstorm, "campaign", "run", place, *options, "--secret", "s3"], cwd=beside)
    manifests["bucket"] = beside / "kubernetes.json"
    validate = [venv() / "bin" / "kubernetes-validate", "--strict"]
    for version in KUBERNETES:
        for manifest in manifests.values():
            run([*validate, "-k", version, manifest])
            # The validator sees a key that there is not.
            wrong = folder / "wrong.json"
            wrong.write_text(manifest.read_text().replace('"completions"', '"completion"'))
            run([*validate, "-k", version, wrong], codes=(1,))
    print(f"kubernetes: the manifests are valid in {' and '.join(KUBERNETES)}", flush=True)


# In CSV a column of whole numbers is one of integers.
ASK = """
import sys, duckdb
for row in duckdb.sql(sys.argv[1]).fetchall():
    print([float(value) if type(value) is int else value for value in row])
"""


def duckdb(trial):
    """The questions of two chapters of the book, asked of the files that they are about, of both kinds."""
    columns, chapter = ((ROOT / "book/src" / file).read_text() for file in ("results.md", "campaigns.md"))
    questions = {
        "redlock/jump_and_latency.toml": re.search(r"duckdb <<'SQL'\n(.*?)\nSQL", columns, re.S),
        "storm/lease.toml": re.search(r"```text\n(select .*?)\n```", chapter, re.S),
    }
    for file, question in questions.items():
        if question is None:
            raise Failure(f"the question about {file} is not where it was")
        answers = []
        for kind in ["csv", "parquet"]:
            results = trial.folder / f"results.{kind}"
            run([trial.lockstorm, "run", file, "--seeds", "0..4", "--results", results], codes=(0, 1, 2))
            [named] = set(re.findall(r"from '(.*?)'", question[1]))
            rows = run([venv() / "bin" / "python", "-c", ASK, question[1].replace(named, str(results))]).splitlines()
            answers.append(sorted(rows))
        if len(answers[0]) < 2 or answers[0] != answers[1]:
            raise Failure(f"duckdb: the answers are no two groups, or differ: {answers}")
        print(f"duckdb: {len(answers[0])} groups of {file}, of CSV and of Parquet", flush=True)


def matrix(trial):
    """What the book's jobs have lockstorm do, in their order, where each job of the matrix has a folder of its own until its shards are handed on."""
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "book/src/campaigns.md").read_text(), re.S)
    million = "storm/lease.toml --seeds 0..1000000"
    systems = {
        "github-workflows": ("runs-on:", "if: ${{ !cancelled() }}", [{"${{ matrix.part }}": str(part)} for part in range(4)]),
        "gitlab-ci": ("stage:", "when: always", [{"$((CI_NODE_INDEX - 1))": str(part), "$CI_NODE_TOTAL": "8"} for part in range(8)]),
    }
    check = [venv() / "bin" / "check-jsonschema", "--builtin-schema"]
    for system, (has, keeps, jobs) in systems.items():
        [text] = [block for block in blocks if has in block]
        # The merge fails where a run was not as expected, and the table must be kept then, too.
        if million not in text or keeps not in text:
            raise Failure(f"{system}: the book's file has no {million!r}, or no {keeps!r}")
        file = trial.folder / f"{system}.yml"
        file.write_text(text)
        run([*check, f"vendor.{system}", file])
        # The schema sees a key that there is not.
        wrong = trial.folder / f"{system}.wrong.yml"
        wrong.write_text(text.replace("strategy:", "strategies:").replace("script:", "scripts:"))
        run([*check, f"vendor.{system}", wrong], codes=(1,))
        [plan, work, merge] = [re.search(rf"\./lockstorm (campaign {verb} .*)", text)[1] for verb in ["plan", "work", "merge"]]
        planned = trial.folder / system
        planned.mkdir()
        plan = plan.replace(million, " ".join(str(word) for word in trial.what))
        run([trial.lockstorm, *plan.split(), "--shard-runs", trial.shard_runs], cwd=planned)
        for number, variables in enumerate(jobs):
            job = trial.folder / f"{system}-{number}"
            shutil.copytree(planned, job)
            command = work
            for name, value in variables.items():
                command = command.replace(name, value)
            run([trial.lockstorm, *command.split()], cwd=job)
        for number in range(len(jobs)):
            shutil.copytree(trial.folder / f"{system}-{number}" / "million/shards", planned / "million/shards", dirs_exist_ok=True)
        run([trial.lockstorm, *merge.split()], cwd=planned, codes=(trial.code,))
        trial.compare(system, planned / "million", planned / "million/results.csv")


def nextest(_):
    """Each test is in one of the slices that a matrix of jobs has, and passes there with the seeds that are asked for."""
    try:
        run(["cargo", "nextest", "--version"], cwd=ROOT)
    except Failure:
        print("nextest: NOT CHECKED, for cargo-nextest is not installed here (cargo install --locked cargo-nextest)", flush=True)
        return
    tests = ["--package", "lockstorm", "--test", "library"]

    def names(*which):
        listed = json.loads(run(["cargo", "nextest", "list", *tests, "--message-format", "json", *which], cwd=ROOT))
        cases = [case for suite in listed["rust-suites"].values() for case in suite["testcases"].items()]
        return [name for name, case in cases if case["filter-match"]["status"] == "matches"]

    slices = [["--partition", f"slice:{part}/{SLICES}"] for part in range(1, SLICES + 1)]
    parts = [names(*one) for one in slices]
    if not all(parts) or sorted(sum(parts, [])) != sorted(names()):
        raise Failure(f"nextest: the slices are {parts}")
    for one in slices:
        run(["cargo", "nextest", "run", *tests, *one], cwd=ROOT, env={**os.environ, "LOCKSTORM_SEEDS": "0..40"})
    print(f"nextest: {len(names())} tests passed in slices of {', '.join(str(len(part)) for part in parts)}", flush=True)


ENGINES = {
    "local": local,
    "bucket": bucket,
    "slurm": slurm,
    "kubernetes": kubernetes,
    "duckdb": duckdb,
    "matrix": matrix,
    "nextest": nextest,
}


def main():
    global PATIENCE_S
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help=f"of {', '.join(ENGINES)}; all without one")
    parser.add_argument("--lockstorm", type=Path, help="a lockstorm built with --features s3; without it, one is built in release")
    parser.add_argument("--files", nargs="+", default=["single/wall_clock_step.toml", "storm/spin.toml"])
    parser.add_argument("--seeds", default="0..100")
    parser.add_argument("--shard-runs", type=int, default=10)
    parser.add_argument("--patience", type=int, default=PATIENCE_S, help="seconds that one step may take (%(default)s)")
    arguments = parser.parse_args()
    PATIENCE_S = arguments.patience
    unknown = [name for name in arguments.engines if name not in ENGINES]
    if unknown:
        parser.error(f"no engine {', '.join(unknown)}; there are {', '.join(ENGINES)}")
    lockstorm = arguments.lockstorm
    if lockstorm is None:
        run(["cargo", "build", "--release", "--quiet", "--package", "lockstorm-cli", "--features", "parquet,s3"], cwd=ROOT)
        lockstorm = TARGET / "release" / "lockstorm"
    with tempfile.TemporaryDirectory(prefix="lockstorm-campaign-") as folder:
        trial = Trial(lockstorm.resolve(), Path(folder).resolve(), arguments.files, arguments.seeds, arguments.shard_runs)
        for name in arguments.engines or ENGINES:
            ENGINES[name](trial)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        print(failure, file=sys.stderr)
        sys.exit(1)
