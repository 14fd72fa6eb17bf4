"""Whether a packed body came to its end: the HTTP client unpacks what there is of it, and does not say."""

from collections.abc import Iterator
from typing import Final

import httpx2

_SIZE: Final = 4  # bytes at the end of a gzip body: how long the text is that it holds


def watch(client: httpx2.Client) -> None:
    """Look at the ends of all bodies that this client will receive."""
    client.event_hooks["response"].append(_watch)


def whole(response: httpx2.Response) -> bool:
    """Whether a received body is all there, as far as its packing tells."""
    stream = response.stream
    if not isinstance(stream, _Tail):
        return True
    said = int.from_bytes(stream.end, "little")
    return said == len(response.content) & 0xFFFFFFFF


def _watch(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "").strip().lower() == "gzip":
        assert isinstance(response.stream, httpx2.SyncByteStream)
        response.stream = _Tail(response.stream)


class _Tail(httpx2.SyncByteStream):
    """A stream of which the last bytes are kept."""

    def __init__(self, stream: httpx2.SyncByteStream) -> None:
        self._stream = stream
        self.end = b""

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self.end = (self.end + piece[-_SIZE:])[-_SIZE:]
            yield piece

    def close(self) -> None:
        self._stream.close()
