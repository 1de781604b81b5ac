#!/usr/bin/env python3
"""Records a capture of Redisson's other kinds of locks again: record_kinds.py SERVER KIND STORY.

Kinds.java plays the story, with the jars that trials/setup installs. SERVER is a program in target/trials/servers.
KIND is read-write, fair, semaphore, permits or latch; the stories are those of shared.rs.
"""

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
TRIALS = FOLDER.parents[2] / "target/trials"


def main():
    server, kind, story = sys.argv[1:4]
    port = random.randint(21000, 29000)
    jars = f"{TRIALS}/jvm/target/dependency/*"
    with tempfile.TemporaryDirectory() as folder, open(FOLDER / f"{kind}-{story}.monitor", "w") as capture:
        program = [TRIALS / "servers" / server, "--port", str(port), "--save", "", "--dir", folder]
        processes = [subprocess.Popen(program, stdout=subprocess.DEVNULL)]
        try:
            time.sleep(0.5)
            processes.append(subprocess.Popen(["redis-cli", "-p", str(port), "monitor"], stdout=capture))
            time.sleep(0.2)
            java = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jars, FOLDER / "Kinds.java"]
            subprocess.run([*java, str(port), kind, story], check=True)
            time.sleep(0.2)
        finally:
            for process in reversed(processes):
                process.kill()


if __name__ == "__main__":
    main()
