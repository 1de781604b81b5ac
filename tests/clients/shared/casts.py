"""Who plays what: each play is given by every cast of two processes, of one kind or of both, and must go the same way, for then no
process depends on the kind of the other."""

import difflib
import os
import sys
from dataclasses import dataclass
from typing import Any

import plays
from plays import HOUR_MS, SINGLE
from stage import Peer, Silent, Stage, until

REDISSON = ["java", "-XX:TieredStopAtLevel=1", "-cp", "../jvm/target/suite.jar:../jvm/target/dependency/*", "Peer"]
# Seconds in which every process finds the server that has taken over from another.
FINDS_S = 60
# By place among the four processes: of both kinds, then of one.
CASTS = [(0, 1), (1, 0), (0, 2), (1, 3)]


@dataclass
class Venue:
    """Where locks stand: by which URLs a process finds them, and how they look from outside."""

    urls: list
    servers: list
    monitor: Any
    watchdog_ms: int = plays.WATCHDOG_MS
    # A key, whose server is to know the scripts before each play.
    name: str = "warm"
    # What brings servers that are killed and come back, without the scripts, into order before each play.
    prepare: Any = None

    def start(self):
        """Two processes of each kind."""
        kinds = {"redisson": REDISSON, "lockstorm": [os.environ["PEER"]]}
        given = [str(self.watchdog_ms), *self.urls]
        return [Peer(kind, [*command, *given]) for _ in range(2) for kind, command in kinds.items()]

    def teach(self, peers):
        """The servers know the scripts: from here on, an attempt is one call."""
        name = self.name
        for peer in peers:
            several = ["red"] if len(self.urls) > 1 else []
            for kind in [*SINGLE, *several, "read", "write", "values xy"]:
                peer.thread(1)("acquire", kind, name, HOUR_MS)
                peer.thread(1)("release", kind, name)
            peer.thread(1)("give", f"permits{{{name}}}", 1)
            peer.thread(1)("take", f"permits{{{name}}}", 1)
            peer.thread(1)("ids", f"ids{{{name}}}", 1)
            peer.thread(1)("give id", f"ids{{{name}}}", peer.thread(1)("take id", f"ids{{{name}}}", HOUR_MS))

    def teach_again(self, stage, peers):
        """As `teach`, where a process may yet have to find the server that has taken over: a deposed master refuses what it writes."""
        refusals = []

        def are_taught():
            stage.clear()
            try:
                self.teach(peers)
            except RuntimeError as refusal:
                refusals.append(refusal)
                return False
            return True

        try:
            until("all processes have found who serves", are_taught, FINDS_S)
        except Silent:
            raise
        except TimeoutError as never:
            raise never from (refusals[-1] if refusals else None)

    def warm(self):
        """Processes of both kinds, whose servers know the scripts."""
        peers = self.start()
        self.teach(peers)
        return peers

    def give(self, peers, title, casts, play, *more):
        """Plays with each of the casts: what to print, and whether all went the same way."""
        told = []
        for first, second in ([peers[place] for place in CASTS[cast]] for cast in casts):
            threads = {f"{name}{n}": peer.thread(n) for name, peer in (("a", first), ("b", second)) for n in range(1, 5)}
            stage = Stage(self.servers, threads)
            if self.prepare:
                self.prepare()
                self.teach_again(stage, peers)
            stage.clear()
            play(stage, *more)
            told.append((f"{first.kind} and {second.kind}", stage.lines))
        same = all(lines == told[0][1] for _, lines in told)
        said = [f"{title}: {line}" for line in told[0][1]]
        for cast, lines in told[1:]:
            differences = difflib.unified_diff(told[0][1], lines, told[0][0], cast, lineterm="", n=0)
            said += [f"{title}, {cast}: {line}" for line in differences]
        return said, same

    def give_all(self, peers, title, play, *more):
        """Plays with two threads of each of the four processes."""
        names = ["redisson", "lockstorm", "redisson'", "lockstorm'"]
        threads = {f"{name} {n}": peer.thread(n) for name, peer in zip(names, peers) for n in (1, 2)}
        stage = Stage(self.servers, threads)
        stage.clear()
        play(stage, *more)
        return [f"{title}: {line}" for line in stage.lines], True

    def perform(self, for_two, for_all=()):
        """Gives the plays one after the other, and prints what is said. Whether each went the same way with every cast."""
        plays.monitor = self.monitor
        peers, again, same = self.warm(), 1, []
        programme = [(self.give, *play) for play in for_two] + [(self.give_all, *play) for play in for_all]
        try:
            for how, title, *play in programme:
                try:
                    lines, held = how(peers, title, *play)
                except Silent as silent:
                    # Once in some ten thousand waits, a waiter of Redisson has slept on although the lock was released, on redis-server
                    # as well. The same play with new processes tells whether that was chance: what a server or lockstorm-client always
                    # does wrong, it does wrong again.
                    if silent.kind != "redisson" or again == 0:
                        raise
                    again -= 1
                    server = self.servers[0]
                    seen = f"channels {server.pubsub_channels()}, keys {server.keys()}, last commands {self.monitor.lines[-20:]}"
                    print(f"played again: {title}: {silent}; {seen}", file=sys.stderr, flush=True)
                    for peer in peers:
                        peer.kill()
                    if self.prepare:
                        self.prepare()
                    for server in self.servers:
                        server.flushall()
                    peers = self.warm()
                    lines, held = how(peers, title, *play)
                for line in lines:
                    print(line, flush=True)
                same.append(held)
        finally:
            for peer in peers:
                peer.end()
        return all(same)
