"""The processes that share locks, and the server as it looks from outside."""

import queue
import re
import subprocess
import threading
import time
from itertools import count

import redis

# Longer than anything here takes on a busy machine, and less than the minute that a lease of an hour may have lost (`plays.py`).
PATIENCE_S = 50


def until(what, holds, patience=PATIENCE_S):
    deadline = time.monotonic() + patience
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"never: {what}")
        time.sleep(0.002)


class Silent(TimeoutError):
    """A process does not answer."""

    def __init__(self, kind, asked):
        super().__init__(f"no answer to {asked}")
        self.kind = kind


class Answer:
    """What a thread will say to one command."""

    def __init__(self, kind, asked):
        self.kind = kind
        self.asked = asked
        self.said = queue.Queue()

    def pending(self):
        return self.said.empty()

    def get(self):
        try:
            said = self.said.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise Silent(self.kind, self.asked) from None
        if said.startswith("error: "):
            raise RuntimeError(f"{self.asked}: {said}")
        return said


class Peer:
    """A process with its own client. Its threads are owners of locks."""

    def __init__(self, kind, command):
        self.kind = kind
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        self.answers = {}
        self.ids = count()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            number, said = line.rstrip("\n").split("\t", 1)
            self.answers.pop(int(number)).said.put(said)

    def begin(self, thread, *words):
        number = next(self.ids)
        answer = self.answers[number] = Answer(self.kind, f"{self.kind} {thread}: {' '.join(map(str, words))}")
        self.process.stdin.write("\t".join(map(str, (number, thread, *words))) + "\n")
        self.process.stdin.flush()
        return answer

    def thread(self, number):
        return Thread(self, number)

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE_S)

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=PATIENCE_S)


class Thread:
    """One owner."""

    def __init__(self, peer, number):
        self.peer = peer
        self.number = number
        self.owner = self("owner")

    def begin(self, *words):
        return self.peer.begin(self.number, *words)

    def __call__(self, *words):
        return self.begin(*words).get()


class Monitor:
    """Every command that some servers get, in the order in which each obeys them."""

    def __init__(self, servers):
        self.servers = servers
        self.lines = []
        self.marks = count()
        self.ears = {}
        self.listen()

    def listen(self):
        """Hears all servers from now on. One that comes back must be listened to again, and so must a replica that Sentinels promote,
        because they cut off its clients."""
        for server in self.servers:
            if server not in self.ears or not self.ears[server].is_alive():
                self.ears[server] = self.ear(server)

    def ear(self, server):
        port = server.connection_pool.connection_kwargs["port"]
        feed = redis.Redis("127.0.0.1", port, socket_timeout=None).monitor()
        feed.__enter__()

        def hear():
            while True:
                try:
                    self.lines.append(feed.next_command()["command"])
                except redis.ConnectionError:
                    return

        ear = threading.Thread(target=hear, daemon=True)
        ear.start()
        return ear

    def mark(self):
        """How many commands the servers had obeyed when this was called."""
        marks = []

        def heard():
            self.listen()
            mark = f"ECHO mark-{next(self.marks)}"
            for server in self.servers:
                server.execute_command(*mark.split())
            marks.append(mark)
            return any(self.lines.count(mark) == len(self.servers) for mark in marks)

        until("the monitor's own marks", heard)
        return max(at for at, line in enumerate(self.lines) if line in marks)

    def scripts(self, since, word, until=None):
        """How many scripts were called with this word since one mark, and until another."""
        called = (line.split() for line in self.lines[since:until] if line.startswith("EVALSHA "))
        return sum(any(part in (word, f"{word}:write") for part in line) for line in called)


class Stage:
    """Some threads by name, the keys they leave, and what is said of both."""

    def __init__(self, servers, threads):
        self.servers = servers
        self.server = servers[0]
        self.threads = threads
        self.lines = []

    def say(self, what, value):
        self.lines.append(f"{what}: {self.named(str(value))}")

    def named(self, text):
        for name, thread in self.threads.items():
            text = re.sub(f"{thread.owner}(?![0-9])", name, text)
        return text

    def clear(self):
        until("there are no subscribers", lambda: not self.server.pubsub_channels())
        for server in self.servers:
            server.flushall()

    def keys(self, server=None):
        """The keys that are stored, without unlock latches, which stay until their client has received the result, and without the times by
        which waiters of a fair lock ask again, which only lockstorm-client keeps."""
        server = server or self.server
        apart = ("redisson_unlock_latch", "redisson_lock_alive")
        keys = (key for key in server.keys() if not key.startswith(apart))
        return dict(sorted((self.named(key), self.content(server, key)) for key in keys))

    def channels(self):
        """Who listens."""
        return sorted(map(self.named, self.server.pubsub_channels()))

    def value(self, field, value):
        """Of a deadline by a clock how many minutes are left: nearly the same time in every run."""
        return f"{round((int(value) / 1000 - time.time()) / 60)} min" if field.endswith(":expire_time") else value

    def content(self, server, key):
        match server.type(key):
            case "hash":
                return dict(sorted((self.named(field), self.value(field, value)) for field, value in server.hgetall(key).items()))
            case "list":
                return server.lrange(key, 0, -1)
            case "zset":
                # Deadlines by a client's clock: nearly the same time in every run, counted in waits of 300 s.
                now = time.time() * 1000
                return [(member, round((score - now) / 300_000)) for member, score in server.zrange(key, 0, -1, withscores=True)]
            case "string":
                return server.get(key)
            case other:
                return other
