"""The server process: its socket, and the shutdown.

On SIGTERM or Ctrl-C no new requests are accepted, accepted ones are finished within a grace time, and the rest is
answered with a 503. A second signal ends the process at once. On SIGHUP the models are read again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import uvicorn

from headwise.errors import HeadwiseError, UsageError
from headwise.serving.app import Service
from headwise.serving.connection import Connection
from headwise.tasks.interface import Served

LINGER = 0.5  # seconds in which kept-alive connections can learn that the server shuts down
STOP_SECONDS = 1.0  # in which the threads of the engines end, after the last request has been answered
IDLE = 30  # seconds after which a connection without requests is closed
log = logging.getLogger("headwise.server")

Reopen = Callable[[], Sequence[Served]]


class Server(uvicorn.Server):
    """Is uvicorn with a shutdown of its own, and with models that can be replaced."""

    def __init__(self, config: uvicorn.Config, service: Service, reopen: Reopen | None = None) -> None:
        super().__init__(config)
        self.service, self.reopen = service, reopen
        self._in_terminal = sys.stdin is not None and sys.stdin.isatty()
        self._should_reload = False
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Does not raise the signal again after the shutdown, unlike uvicorn, so that the exit code is 0."""
        handlers = {
            signal.SIGINT: self.handle_exit,
            signal.SIGTERM: self.handle_exit,
            signal.SIGHUP: self.handle_reload,
        }
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True

    def handle_reload(self, sig: int, frame: FrameType | None) -> None:
        if self._in_terminal and not sys.stdin.isatty():  # the terminal is gone: that sends a SIGHUP too
            self.should_exit = True
        self._should_reload = True

    async def on_tick(self, counter: int) -> bool:
        if self._should_reload and self.reopen is not None and not self.should_exit:
            self._should_reload = False
            task = asyncio.create_task(self._reload(self.reopen))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await super().on_tick(counter)

    async def _reload(self, reopen: Reopen) -> None:
        """Reads the models again. They replace those in use only if each has decoded something."""
        log.info("reading the models again")
        try:
            served = await asyncio.to_thread(reopen)
        except Exception as error:
            reason = error if isinstance(error, HeadwiseError) else type(error).__name__
            log.error("the models are not replaced: %s; those from before stay in use", reason)
            return
        log.info("the models are replaced: %s", ", ".join(one.facts.name for one in served))
        await self.service.replace_models(served)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finishes accepted requests or ends them with a 503, then closes the connections."""
        guard, grace = self.service.guard, self.service.limits.grace
        began = time.monotonic()
        guard.draining = True
        log.info("shutting down: finishing %d requests", guard.in_flight)
        for server in self.servers:
            server.close()
        for listening in sockets or []:
            listening.close()
        while self.server_state.connections:
            waited = time.monotonic() - began
            if waited > grace or (not guard.in_flight and waited > LINGER):
                break
            await asyncio.sleep(0.02)
        unfinished = guard.in_flight
        self.service.close_queues()
        if unfinished:
            log.info("the grace time is over: %d requests are ended with a 503", unfinished)
            for _ in range(50):  # one second for these answers to be sent
                if not guard.in_flight:
                    break
                await asyncio.sleep(0.02)
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """Opens a listening socket; raises a UsageError with the reason where that is not possible."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # asyncio sets TCP_NODELAY only where the protocol is named; without it, requests take 40 ms longer.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot listen on {host}:{port}: {reason}; choose another --port or --host") from None
    return listening


def run(
    service: Service, listening: socket.socket, reopen: Reopen | None = None, trusted_proxies: Sequence[str] = ()
) -> None:
    """Serves until a signal ends it. `reopen` opens the models again on SIGHUP.

    The header X-Forwarded-For is believed only if a trusted proxy sends it.
    """
    # The event loop gets Python's global lock back sooner while the engines' threads run.
    sys.setswitchinterval(0.001)
    connection = type("ServiceConnection", (Connection,), {"service": service})
    config = uvicorn.Config(
        service,
        http=connection,
        ws="none",
        loop="asyncio",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=2,
    )
    Server(config, service, reopen).run(sockets=[listening])
    if not service.join_queues(STOP_SECONDS):
        # Python would end these threads in the middle of a library's code, which ends the process with SIGABRT.
        log.warning("an engine does not stop; the process ends without it")
        logging.shutdown()
        os._exit(0)
