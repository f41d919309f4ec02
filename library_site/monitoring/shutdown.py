"""Logs the start and the stop of a server's process, and ends its requests before the server kills it."""

import ctypes
import logging
import os
import signal
import socket
import sqlite3
import time
from contextlib import suppress
from multiprocessing.util import Finalize
from threading import Thread
from time import perf_counter
from urllib.parse import quote

import psycopg
from django.conf import settings

from library_site.http.request_log import active_requests, current_request_id

log = logging.getLogger("library_site.process")

# Seconds before the kill at which statements are cancelled, so that their requests get a 503 response, and at which the
# remaining requests are logged.
CANCEL_MARGIN, CUT_MARGIN = 1.5, 0.3
END_POLL_INTERVAL = 0.05
# The option's number in <linux/prctl.h>, and the function, which other systems do not have.
PR_SET_PDEATHSIG = 1
prctl = getattr(ctypes.CDLL(None), "prctl", None)


def end_with_parent(parent: int) -> None:
    """Makes the system send SIGTERM to this process when the thread that started it ends (prctl(2)).

    A killed server cannot stop its processes: they would keep the port and continue to serve. `parent` is its id.
    """
    if prctl:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        # It was killed before.
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)


def watch_for_stop() -> None:
    """Call it in the main thread. The server's own handler of SIGTERM stays: Python writes the signal to a socket."""
    log.info("The process serves requests, with %d threads.", settings.WEB_THREADS)
    reader, writer = socket.socketpair()
    writer.setblocking(False)  # noqa: FBT003  # socket defines it so
    signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
    Thread(target=wait_for_stop, args=[reader], name="shutdown", daemon=True).start()
    # The server ends its processes without `atexit`.
    Finalize(None, log.info, args=["The process has stopped."], exitpriority=0)


def wait_for_stop(signals: socket.socket) -> None:
    while signals.recv(1) != bytes([signal.SIGTERM]):
        pass
    end_requests(time.monotonic() + settings.STOP_TIMEOUT)


def end_requests(killed_at: float) -> None:
    if active_requests:
        log.info("The process stops: %d requests are under way.", len(active_requests))
    while active_requests and time.monotonic() < killed_at - CUT_MARGIN:
        if time.monotonic() > killed_at - CANCEL_MARGIN:
            cancel_statements()
        time.sleep(END_POLL_INTERVAL)
    log_cut_requests()


def cancel_statements() -> None:
    """Cancels the statements of all requests. Their requests get a 503 response."""
    for connection in [request.database.connection for request in list(active_requests.values())]:
        if isinstance(connection, sqlite3.Connection):
            connection.interrupt()
        elif connection is not None:
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=CANCEL_MARGIN / 2)


def log_cut_requests() -> None:
    """Logs each request under its id."""
    for request in list(active_requests.values()):
        current_request_id.set(request.request_id)
        seconds = perf_counter() - request.began_at
        path = quote(request.path, encoding="latin-1", errors="replace")
        log.error("Cut off after %.1f s: %s %s", seconds, request.method, path)
