"""How long a client may take for the first line and the headers of a request."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def protocol_with_timeout(seconds: float) -> type[H11Protocol]:
    """HTTP/1.1 that hangs up on whoever takes longer; bytes that come in one by one win no time. What may take how long
    after the headers is the guard's concern."""

    class Patient(H11Protocol):
        late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._stop()

        def _watch(self) -> None:
            """The time runs while headers are on their way; between two requests uvicorn has a shorter one."""
            if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
                self._stop()
            elif self.late is None:
                self.late = self.loop.call_later(seconds, self.transport.close)

        def _stop(self) -> None:
            if self.late is not None:
                self.late.cancel()
                self.late = None

    return Patient
