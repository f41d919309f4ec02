"""The disk of the database is full while books are written, and then has room again."""

import os
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from benchmarks import competitors
from benchmarks.deliveries import Library, migrate_library
from benchmarks.outages.running_writers import SEEDED_BOOK_COUNT, fill, note_errors, wait_for_refusals, wait_for_writes
from benchmarks.support import writers
from benchmarks.support.findings import Finding
from tests.support.postgres import SHORT_FOLDER, find_binary, run_unprivileged, start_cluster
from tests.support.sql import fetch_all

WRITER_COUNT = 8
# SQLite lets half the threads of a process wait, and refuses the others.
SETTINGS = {"LIBRARY_ACCESS": "open", "WEB_THREADS": "40"}
DISK_MIB = 320
# What the ballast leaves of the disk when it fills up.
FREE_MIB = 3


def check_full_disk(options: Namespace) -> Iterator[Finding]:
    if os.geteuid() != 0:
        yield Finding("Disk full", "NOT TRIED: only root can mount a small disk", 1)
        return
    for name, create_library in LIBRARIES.items():
        with mount_small_disk() as disk, create_library(disk) as library:
            fill(library)
            yield fill_disk(name, disk, library)


@contextmanager
def mount_small_disk() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="library-disk-", dir=SHORT_FOLDER) as folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=755", "tmpfs", folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def create_postgresql_library(disk: Path) -> Iterator[Library]:
    with start_cluster(str(disk), shared_buffers="32MB", max_wal_size="64MB", min_wal_size="32MB") as cluster:
        yield migrate_library(cluster.url(), cluster)


@contextmanager
def create_sqlite_library(disk: Path) -> Iterator[Library]:
    yield migrate_library(f"sqlite:///{disk}/library.sqlite3", None)


LIBRARIES: dict[str, Callable[[Path], AbstractContextManager[Library]]] = {
    "PostgreSQL": create_postgresql_library,
    "SQLite": create_sqlite_library,
}


def fill_disk(name: str, disk: Path, library: Library) -> Finding:
    with (
        competitors.start_quiet_library(library.url, **SETTINGS) as server,
        writers.run_writers(f"http://127.0.0.1:{server.port}", WRITER_COUNT) as running,
    ):
        wait_for_writes(running, 500)
        ballast = write_ballast(disk)
        wait_for_refusals(running)
        ballast.unlink()
        has_restarted = restart_if_stopped(library)
        seconds = wait_for_writes(running, 500)
    note_errors(running)
    fetch = partial(fetch_all, library.url)
    started = ", after PostgreSQL was started again" if has_restarted else ""
    result = f"{writers.summarize_writes(fetch, running)}; back {seconds:.1f} s after there was room{started}"
    return Finding(f"Disk full, {name}", result, writers.count_wrong(fetch, running, SEEDED_BOOK_COUNT))


def write_ballast(disk: Path) -> Path:
    """Fills the disk but for FREE_MIB, which the next writes take."""
    status, ballast = os.statvfs(disk), disk / "ballast"
    size = status.f_bavail * status.f_frsize - FREE_MIB * 1024 * 1024
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
    return ballast


def restart_if_stopped(library: Library) -> bool:
    """PostgreSQL ends itself if it cannot write its log, and systemd starts it again. Returns whether it had ended."""
    if not library.cluster:
        return False
    pg_ctl = [find_binary("pg_ctl"), "-D", str(library.cluster.sockets / "data"), "-w"]
    try:
        run_unprivileged(*pg_ctl, "status")
    except subprocess.CalledProcessError:
        run_unprivileged(*pg_ctl, "-l", str(library.cluster.sockets / "log"), "start")
        return True
    return False
