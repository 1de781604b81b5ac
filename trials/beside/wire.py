"""Links between one client and the nodes of a system: TCP proxies that can fall silent.

A silent socket gets a filter (SO_ATTACH_FILTER) by which the kernel drops every packet that arrives
for it, before TCP sees it. So nothing is acknowledged, no keep-alive is answered and no connection
is refused, as behind a cut cable. When the filter is gone, both ends send again.
"""

import asyncio
import ctypes
import socket
import struct

SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27
# One instruction: keep 0 bytes of every packet.
_CODE = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))
_DROP_ALL = struct.pack("HL", 1, ctypes.addressof(_CODE))


def silence(one):
    one.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, _DROP_ALL)


def revive(one):
    try:
        one.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
    except OSError:
        # It has no filter, or is closed.
        pass


class Link:
    """A listener of its own for one client, whose connections lead to one node."""

    def __init__(self, node):
        self.node = node
        self.is_cut = False
        # Bytes in a request after which its connection falls silent for ever, and the call to make
        # then.
        self.loses = None
        self.pairs = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.tasks = {asyncio.create_task(self.accept())}

    def add(self, work):
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def accept(self):
        loop = asyncio.get_running_loop()
        while True:
            near, _ = await loop.sock_accept(self.listener)
            self.add(self.join(near))

    async def join(self, near):
        loop = asyncio.get_running_loop()
        far = socket.socket()
        for one in (near, far):
            one.setblocking(False)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host, port = self.node.rsplit(":", 1)
        try:
            await loop.sock_connect(far, (host, int(port)))
        except OSError:
            near.close()
            far.close()
            return
        pair = (near, far)
        self.pairs.append(pair)
        if self.is_cut:
            for one in pair:
                silence(one)
        await asyncio.gather(self.pump(near, far, pair), self.pump(far, near, None))
        self.pairs.remove(pair)
        for one in pair:
            one.close()

    async def pump(self, source, sink, requests_of):
        """Forwards one direction until its end."""
        loop = asyncio.get_running_loop()
        try:
            while data := await loop.sock_recv(source, 65536):
                if requests_of and self.loses and self.loses[0] in data:
                    # The request arrives. Nothing else does, in either direction.
                    for one in requests_of:
                        silence(one)
                    lost, self.loses = self.loses[1], None
                    lost()
                await loop.sock_sendall(sink, data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            # A reset is passed on.
            for one in (source, sink):
                try:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def cut(self):
        self.is_cut = True
        for one in [self.listener, *(one for pair in self.pairs for one in pair)]:
            silence(one)

    def heal(self):
        self.is_cut = False
        for one in [self.listener, *(one for pair in self.pairs for one in pair)]:
            revive(one)

    def close(self):
        for task in list(self.tasks):
            task.cancel()
        for one in [self.listener, *(one for pair in self.pairs for one in pair)]:
            one.close()
