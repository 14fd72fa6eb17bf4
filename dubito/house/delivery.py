"""Answers that do not arrive as they should: written past the HTTP server, to the connection itself."""

import asyncio
import os
import struct
from socket import SO_LINGER, SOL_SOCKET
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dubito.house.call_log import CallLog
from dubito.house.core import ServerAnswer
from dubito.house.transport_faults import Delivery

TRANSPORT: Final = "transport"  # under this name the connection stands in a request's state
_NO_LINGER: Final = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)


class Delivered(Response):
    """An answer, sent as its delivery says; the connection is closed afterwards in any case."""

    def __init__(self, answer: ServerAnswer, delivery: Delivery, log: CallLog, closing: asyncio.Event) -> None:
        super().__init__(answer.content, answer.status, {**answer.headers, "connection": "close"}, answer.media)
        self._answer, self._delivery, self._log, self._closing = answer, delivery, log, closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the part that is to be sent, then wait until the connection may end."""
        transport: asyncio.Transport = scope["state"][TRANSPORT]
        closing = asyncio.create_task(self._closing.wait())  # the end of the house does not wait for a held client
        closing.add_done_callback(lambda _: transport.abort())
        try:
            await self._send(transport, receive)
            await _gone(receive)
        finally:
            closing.cancel()

    async def _send(self, transport: asyncio.Transport, receive: Receive) -> None:
        if self._delivery.part == "all":
            await self._trickle(transport, receive)
        else:
            self._log.add(self._answer.call.unsent())
            transport.write(self._bytes())
        if transport.is_closing():
            return  # the client was faster
        if self._delivery.end == "reset":
            transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, _NO_LINGER)
            transport.abort()
        elif self._delivery.end == "close":
            transport.close()

    async def _trickle(self, transport: asyncio.Transport, receive: Receive) -> None:
        """Byte by byte. It is an answer once its last byte is under way; the log has it before."""
        everything = self._bytes()
        for place in range(len(everything) - 1):
            transport.write(everything[place : place + 1])
            if await _gone(receive, self._delivery.interval):
                self._log.add(self._answer.call.unsent())
                return
        self._log.add(self._answer.call)
        transport.write(everything[-1:])

    def _bytes(self) -> bytes:
        """The part of the whole answer that is sent."""
        lines = [f"HTTP/1.1 {self.status_code} ".encode(), *(b": ".join(header) for header in self.raw_headers)]
        head = b"\r\n".join([*lines, b"", b""])
        ends = {
            "nothing": 0,
            "half the head": len(head) // 2,
            "half the body": len(head) + len(self.body) // 2,
            "all": len(head) + len(self.body),
        }
        return (head + bytes(self.body))[: ends[self._delivery.part]]


async def _gone(receive: Receive, seconds: float | None = None) -> bool:
    """Wait for so long, or for ever; whether the client has gone."""
    try:
        async with asyncio.timeout(seconds):
            while (await receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return False
    return True
