"""The history of a run, in the format that `lockstorm check` reads, and the findings of lockstorm's
checkers.

It has the events of clients and of the resource, and none of the node: nothing here looks into a
server. So L1, the promises of servers, is undecided. L2, L3, L4 and progress are judged by what
clients believe and by the writes that arrive.
"""

import json
import subprocess
import time


def in_millis(wait_ms):
    return "unbounded" if wait_ms is None else "no" if wait_ms == 0 else {"ms": wait_ms}


class History:
    LOCK = 0

    def __init__(self, scenario, about, seed, replay, server, clients, fence):
        self.t0, self.wall0 = time.monotonic_ns(), time.time_ns()
        self.hosts = [{"name": "system", "kind": "node", "server": server}]
        self.hosts += [{"name": name, "kind": "client"} for name in clients]
        self.hosts.append({"name": "resource", "kind": "resource"})
        self.owners = [{"name": f"{name}:1", "client": at + 1} for at, name in enumerate(clients)]
        self.header = {"scenario": scenario, "about": about, "seed": seed, "engine": "real", "fingerprint": "", "replay": replay}
        self.resource = {"host": len(self.hosts) - 1, "fence": fence}
        self.events, self.faults, self.ops, self.calm = [], [], 0, None
        for host in range(len(self.hosts)):
            self.events.append({"at": 0, "host": host, "what": "life", "life": "started"})
        self.highest = None

    def now(self):
        return time.monotonic_ns() - self.t0

    def wall_ms(self):
        return (self.wall0 + self.now()) / 1e6

    def event(self, host, what, **data):
        at = max(self.now(), self.events[-1]["at"])
        self.events.append({"at": at, "host": host, "what": what, **data})
        return at

    def invoke(self, client, call):
        self.ops += 1
        self.event(client, "invoke", op=self.ops, lock=0, owner=client - 1, call=call)
        return self.ops

    def returns(self, client, op, outcome):
        self.event(client, "return", op=op, outcome=outcome)

    def believes(self, client, until_ms, token):
        said = {"lock": 0, "owner": client - 1}
        if until_ms is not None:
            said["until"] = {"clock": "wall", "nanos": int(until_ms) * 1_000_000}
        if token is not None:
            said["token"] = token
        return self.event(client, "believes", **said, count=1, mode="exclusive")

    def disbelieves(self, client, why):
        self.event(client, "disbelieves", lock=0, owner=client - 1, why=why, mode="exclusive")

    def writes(self, client, token, sent):
        """A write arrives. Both rules decide on it, as those of lockstorm's resource."""
        if token is None:
            greater = at_least = self.highest is None
        elif self.highest is None:
            greater = at_least = True
        else:
            highest, of = self.highest
            greater, at_least = token > highest or (token == highest and of == client), token >= highest
        if token is not None and (self.highest is None or token > self.highest[0]):
            self.highest = (token, client)
        said = {"lock": 0, "owner": client - 1, "sent": sent, "accepted": {"greater": greater, "at_least": at_least}}
        if token is not None:
            said["token"] = token
        self.event(self.resource["host"], "write", **said)

    def fault(self, name, words, targets, lasts):
        fault = {"from": self.now(), "lasts": lasts, "name": name, "words": words, "targets": targets}
        self.faults.append(fault)
        return fault

    def write_to(self, path, expect, bound):
        end = max(self.now(), self.events[-1]["at"])
        clock = [{"from": 0, "readings": [self.wall0, 0, 0], "rates": [1_000_000_000] * 3}]
        # Of two authorities that record nothing both would have to grant: so no checker compares what
        # an owner has with what one of them counts.
        lock = {"name": "lock", "kind": "exclusive", "keys": ["lock"], "authority": {"groups": [[0], [0]], "quorum": 2}}
        # A longer stall is a violation by the checker itself. Times are known to 100 ms.
        longest = 60 if bound is None else bound + 0.1
        header = self.header | {
            "hosts": self.hosts, "locks": [lock], "resource": self.resource, "calm": self.calm if self.calm is not None else end,
            "bounds": {"progress": {"secs": int(longest), "nanos": int(longest % 1 * 1e9)}},
            "end": end, "ended": "complete", "probe": "not-ours", "expect": expect}
        clocks = [clock] * len(self.hosts)
        first = {"lockstorm_history": 2, "header": header, "owners": self.owners, "clocks": clocks, "faults": self.faults}
        with open(path, "w") as file:
            for line in [first, *self.events]:
                print(json.dumps(line), file=file)


def judge(lockstorm, path):
    """The findings about a history, by the checker's name."""
    done = subprocess.run([lockstorm, "check", "--json", path], capture_output=True, text=True)
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(f"{path}: {done.stderr}")
    return {finding["checker"]: finding for finding in json.loads(done.stdout)["findings"]}
