"""The web server: a parent process loads the library, and its workers share that memory."""

import multiprocessing
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import OperationalError, connection, connections
from granian.constants import Interfaces
from granian.log import LogLevels
from granian.server.mp import MPServer

from library_site.db.sqlite.base import keep_open
from library_site.monitoring.listener import start_listener
from library_site.monitoring.shutdown import end_with_parent, watch_for_stop

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

# Seconds, about 68 years: threads live as long as their process. The connection of an ended thread would stay open
# until the garbage collector runs, and its finalizer can crash the process.
THREAD_IDLE_TIMEOUT = 2**31


def build_server(start: Callable[[], None]) -> MPServer:
    """Returns a server for the addresses of the settings. It calls `start` as soon as it handles signals.

    Threads let the commits of writers overlap; dead workers are replaced.
    """
    server = MPServer(
        f"{__name__}:load_application",
        factory=True,
        interface=Interfaces.WSGI,
        address=settings.HOST,
        port=settings.PORT,
        workers=settings.WEB_CONCURRENCY,
        blocking_threads=settings.WEB_THREADS,
        websockets=False,
        log_level=LogLevels.error,
        log_dictconfig=settings.LOGGING,
        respawn_failed_workers=True,
        # Seconds after which a stopping worker is killed.
        workers_kill_timeout=settings.STOP_TIMEOUT,
    )
    # SIGHUP, from a terminal that closes, ends the library. The server itself would only restart its workers.
    server.on_startup(lambda: signal.signal(signal.SIGHUP, server.signal_handler_interrupt))
    server.on_startup(start)
    # It is set here, after Granian's own check, which allows ten minutes at most.
    server.on_startup(lambda: setattr(server, "blocking_threads_idle_timeout", THREAD_IDLE_TIMEOUT))
    return server


def prepare_workers() -> None:
    """Call it after everything is loaded, and before the server forks its workers from this process."""
    # A file that is no database ends the start. One that is missing or in use may be there later.
    if connection.vendor == "sqlite" and Path(connection.settings_dict["NAME"]).exists():
        with suppress(OperationalError):
            connection.ensure_connection()
    # Two processes cannot share a connection.
    connections.close_all()
    multiprocessing.set_start_method("fork", force=True)


def load_application() -> "WSGIApplication":
    """Returns the application; each worker of the server calls it when it starts."""
    # Ctrl-C reaches the workers too. The server would treat a worker that ends before its stop as a crash.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    # A worker inherits the server's handler, which would only store the signal until the worker serves.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if (server := multiprocessing.parent_process()) and server.pid:
        end_with_parent(server.pid)
    from library_site.wsgi import application

    if connection.vendor == "sqlite":
        keep_open(str(connection.settings_dict["NAME"]))
    watch_for_stop()
    if settings.HEALTH_PORT:
        start_listener(settings.HEALTH_HOST, settings.HEALTH_PORT)
    if settings.METRICS_TOKEN:
        from library_site.monitoring.metrics import start_sampling

        start_sampling()
    return application
