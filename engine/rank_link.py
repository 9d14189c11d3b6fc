"""One end of the private link between rank 0 and another rank: messages over a socket pair.

The pair is made before the process and inherited by it: no name, no file, no port. That the other
end is gone, by kill -9 too, is told at once by the end of the stream. Knows nothing of messages.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading

LENGTH = struct.Struct("<I")
LARGEST = 64 << 20  # a character's picture is 3 MB
PIECE = 1 << 16


class RankLink:
    """`send` from any thread, `receive` from one."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._sending = threading.Lock()
        self._arrived = bytearray()

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, data: bytes) -> None:
        """Raises OSError when the other end is gone."""
        with self._sending:
            self.socket.sendall(LENGTH.pack(len(data)) + data)

    def receive(self, timeout_s: float) -> list[bytes] | None:
        """The messages that are complete after at most `timeout_s`; None once the end is gone."""
        if not select.select([self.socket], [], [], timeout_s)[0]:
            return []
        try:
            data = self.socket.recv(PIECE)
        except OSError:
            data = b""
        if not data:
            return None
        self._arrived += data
        return self._complete()

    def _complete(self) -> list[bytes]:
        messages = []
        while len(self._arrived) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._arrived)
            if length > LARGEST:
                raise ValueError(f"a message of {length} bytes, {LARGEST} is the limit")
            end = LENGTH.size + length
            if len(self._arrived) < end:
                break
            messages.append(bytes(self._arrived[LENGTH.size : end]))
            del self._arrived[:end]
        return messages

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
