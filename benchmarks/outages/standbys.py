"""The primary PostgreSQL dies amid writes, and its streaming replica is promoted."""

import os
import shutil
import signal
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Timer
from urllib.parse import quote

from benchmarks.deliveries import Library, migrate_library, wait_until
from benchmarks.outages.running_writers import SEEDED_BOOK_COUNT, build_finding, fill, serve_writers, wait_for_writes
from benchmarks.support import writers
from benchmarks.support.findings import Finding
from tests.support.postgres import SHORT_FOLDER, Cluster, find_binary, run_unprivileged, start_cluster
from tests.support.sql import fetch_all

WRITER_COUNT = 16
RECEIVER_PAUSE = 5.0
SYNCHRONOUS = {True: "synchronous", False: "asynchronous"}


def check_failover(options: Namespace) -> Iterator[Finding]:
    for is_synchronous in (True, False):
        with (
            start_cluster(shared_buffers="128MB", wal_level="replica") as primary,
            start_standby(primary) as (library, standby),
        ):
            if is_synchronous:
                wait_for_standby(library)
            yield fail_over(primary, standby, is_synchronous)


@contextmanager
def start_standby(primary: Cluster) -> Iterator[tuple[Library, Cluster]]:
    """Yields a library on the primary, and a streaming replica."""
    library = migrate_library(primary.url(), primary)
    fill(library)
    home = Path(tempfile.mkdtemp(prefix="library-standby-", dir=SHORT_FOLDER))
    shutil.chown(home, "nobody")
    data = str(home / "data")
    try:
        source = ["-h", str(primary.sockets), "-U", "postgres"]
        run_unprivileged(find_binary("pg_basebackup"), *source, "-D", data, "-R", "-X", "stream", "-c", "fast")
        pg_ctl = [find_binary("pg_ctl"), "-D", data, "-w"]
        run_unprivileged(*pg_ctl, "-o", f"-c unix_socket_directories={home}", "-l", str(home / "log"), "start")
        yield library, Cluster(home)
        run_unprivileged(*pg_ctl, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home)


def wait_for_standby(library: Library) -> None:
    """From now on a commit waits for the standby's disk."""
    for statement in ("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"):
        if library.cluster:
            library.cluster.run(statement)
    is_synchronous = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
    wait_until(lambda: bool(library.execute_sql(is_synchronous)))


def fail_over(primary: Cluster, standby: Cluster, is_synchronous: bool) -> Finding:
    """Writes go on by themselves: the address names both servers, and libpq takes the one that accepts writes."""
    with serve_writers(build_url(primary, standby), WRITER_COUNT) as (_, running):
        wait_for_writes(running, 2_000)
        if not is_synchronous:
            delay_standby(standby)
            wait_for_writes(running, 200)
        run_unprivileged(find_binary("pg_ctl"), "-D", str(primary.sockets / "data"), "-w", "-m", "immediate", "stop")
        start = time.monotonic()
        run_unprivileged(find_binary("pg_ctl"), "-D", str(standby.sockets / "data"), "-w", "promote")
        wait_for_writes(running)
        seconds = time.monotonic() - start
        wait_for_writes(running, 500)
    return judge(standby, running, is_synchronous, seconds)


def delay_standby(standby: Cluster) -> None:
    """The standby hears no more of the primary, as over a network that is slow. A promotion ends its process."""
    [(pid,)] = fetch_all(standby.url(), "SELECT pid FROM pg_stat_wal_receiver")
    os.kill(pid, signal.SIGSTOP)
    # A signal that ends it arrives when it goes on.
    Timer(RECEIVER_PAUSE, os.kill, (pid, signal.SIGCONT)).start()


def build_url(*clusters: Cluster) -> str:
    hosts = quote(",".join(str(cluster.sockets) for cluster in clusters), safe="")
    return f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write&connect_timeout=2"


def judge(standby: Cluster, running: list[writers.Writer], is_synchronous: bool, seconds: float) -> Finding:
    """An asynchronous standby may lack the last writes, and give their ids to other books. The rest must add up."""
    fetch = partial(fetch_all, standby.url())
    results = (f"{writers.count_lost_writes(fetch, running)} lost", f"back {seconds:.1f} s after the promotion began")
    finding = build_finding(f"Failover to a standby, {SYNCHRONOUS[is_synchronous]}", standby.url(), running, *results)
    return finding if is_synchronous else finding._replace(error_count=writers.count_torn(fetch, SEEDED_BOOK_COUNT))
