"""A server on a raw socket that writes given pieces and keeps its connections open."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import BinaryIO, Final

from dubito.model_settings import Api
from tests.llm.kit import reply_body

BODY: Final = json.dumps(reply_body("responses")).encode()

# Returns the bytes to write, given the number of the connection and of the request on it. None closes without a byte.
Answer = Callable[[int, int], Iterator[bytes] | None]


def answer(body: bytes = BODY, *headers: str) -> Iterator[bytes]:
    head = ["HTTP/1.1 200 OK", "content-type: application/json", f"content-length: {len(body)}", *headers]
    yield "\r\n".join([*head, "", ""]).encode() + body


class RawServer:
    """A server that runs as long as its context, and closes connections that are idle for longer than its patience."""

    def __init__(self, answers: Answer, patience: float | None = None) -> None:
        self.requests: list[int] = []  # the connection of each request
        # Set after a request, and after the end of a connection.
        self.asked, self.left = threading.Event(), threading.Event()
        self._answers, self._patience = answers, patience
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> "RawServer":
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(20)

    def base_url(self, protocol: Api) -> str:
        address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        return address if protocol == "messages" else f"{address}/v1"

    def _accept(self) -> None:
        number = 0
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                number += 1
                self._threads.append(threading.Thread(target=self._serve, args=(connection, number)))
                self._threads[-1].start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        connection.settimeout(self._patience)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError), connection, connection.makefile("rb") as reader:  # the client has left
            asked = 0
            while _read_request(reader):
                self.requests.append(number)
                self.asked.set()
                asked += 1
                written = self._answers(number, asked)
                if written is None:
                    break
                for piece in written:
                    connection.sendall(piece)
        self.left.set()


def _read_request(reader: BinaryIO) -> bool:
    """Read a whole request, and return whether there was one."""
    length = 0
    while (line := reader.readline()) not in (b"", b"\r\n"):
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return bool(line) and len(reader.read(length)) == length
