"""A peer: a process that holds a lock library and answers requests, one JSON object per line, as
under `lockstorm trial`.
"""

import asyncio
import json
import os
import signal
import tempfile

HELLO_MAX = 60


class Refusal(Exception):
    """The library has reported an error."""

    def __init__(self, text, definite):
        super().__init__(text)
        self.text, self.definite = text, definite


class Gone(Exception):
    """The process has ended, or breaks the protocol: the run is given up."""


class Peer:
    @classmethod
    async def start(cls, command, cwd, heard):
        peer = cls()
        peer.command, peer.heard, peer.last, peer.waiting = command, heard, 0, {}
        peer.log = tempfile.TemporaryFile()
        peer.process = await asyncio.create_subprocess_shell(
            command, cwd=cwd, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=peer.log, start_new_session=True)
        peer.gone = asyncio.get_running_loop().create_future()
        try:
            line = await asyncio.wait_for(peer.process.stdout.readline(), HELLO_MAX)
            peer.hello = json.loads(line)
        except (asyncio.TimeoutError, ValueError):
            peer.kill()
            raise Gone(f"`{command}` said no hello: {peer.last_words()}") from None
        except BaseException:
            peer.kill()
            raise
        peer.reading = asyncio.create_task(peer.read())
        return peer

    def can(self, feature):
        return feature in self.hello.get("can", [])

    async def read(self):
        while line := await self.process.stdout.readline():
            said = json.loads(line)
            answered = self.waiting.pop(said.get("id"), None)
            if answered is None:
                self.heard(said)
            elif not answered.done():
                answered.set_result(said)
        if not self.gone.done():
            self.gone.set_result(self.last_words())

    def ask(self, **request):
        """Sends a request. Returns its number, and a future of the answer."""
        self.last += 1
        answered = asyncio.get_running_loop().create_future()
        self.waiting[self.last] = answered
        self.process.stdin.write(json.dumps({"id": self.last, **request}).encode() + b"\n")
        return self.last, answered

    @staticmethod
    def answer_of(said):
        if said["type"] == "error":
            raise Refusal(said["text"], said.get("definite", False))
        return said

    def signal(self, which):
        try:
            os.killpg(self.process.pid, which)
        except ProcessLookupError:
            pass

    def pause(self):
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        self.signal(signal.SIGKILL)

    def last_words(self):
        self.log.seek(0)
        lines = [line.strip() for line in self.log.read().decode(errors="replace").splitlines() if line.strip()]
        shown = lines if len(lines) < 12 else [*lines[:3], "...", *lines[-3:]]
        return f"`{self.command}` has ended: {'; '.join(shown) or 'it said nothing'}"

    async def end(self):
        self.kill()
        await self.process.wait()
        reading = getattr(self, "reading", None)
        if reading:
            reading.cancel()
        self.log.close()
