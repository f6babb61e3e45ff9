"""A time limit for the first line and the headers of a request."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def protocol_with_timeout(seconds: float) -> type[H11Protocol]:
    """HTTP/1.1 that closes connections whose headers are late, even if bytes keep trickling in. The middleware has the
    time limits after the headers."""

    class TimedProtocol(H11Protocol):
        timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._update_timer()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._update_timer()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._stop_timer()

        def _update_timer(self) -> None:
            """Run the timer while headers are expected; between requests, uvicorn's own limit is shorter."""
            if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
                self._stop_timer()
            elif self.timer is None:
                self.timer = self.loop.call_later(seconds, self.transport.close)

        def _stop_timer(self) -> None:
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None

    return TimedProtocol
