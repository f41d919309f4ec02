"""The disk of the database is full while books are written, and then has room again."""

import os
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from benchmarks.deliveries import Library, migrate_library, wait_until
from benchmarks.outages.running_writers import ENOUGH_WRITES, build_finding, fill, serve_writers, wait_for_writes
from benchmarks.support.findings import Finding
from benchmarks.support.writers import Writer, count_unknown
from tests.support.postgres import SHORT_FOLDER, find_binary, run_unprivileged, start_cluster

WRITER_COUNT = 8
# SQLite lets half the threads of a process wait, and refuses the others.
WEB_THREADS = "40"
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
    with serve_writers(library.url, WRITER_COUNT, WEB_THREADS=WEB_THREADS) as (_, running):
        wait_for_writes(running, 500)
        ballast = write_ballast(disk)
        wait_for_refusals(running)
        ballast.unlink()
        has_restarted = restart_if_stopped(library)
        seconds = wait_for_writes(running, 500)
    started = ", after PostgreSQL was started again" if has_restarted else ""
    result = f"back {seconds:.1f} s after there was room{started}"
    return build_finding(f"Disk full, {name}", library.url, running, result)


def wait_for_refusals(running: Sequence[Writer]) -> None:
    before = count_unknown(running).total()
    wait_until(lambda: count_unknown(running).total() >= before + ENOUGH_WRITES)


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
