"""PgBouncer stands before PostgreSQL in transaction mode, and is killed amid writes."""

import os
import shutil
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks import competitors
from benchmarks.deliveries import migrate_library
from benchmarks.outages.running_writers import SEEDED_BOOK_COUNT, fill, note_errors, wait_for_writes
from benchmarks.support import writers
from benchmarks.support.findings import Finding
from tests.support.postgres import SHORT_FOLDER, Cluster, start_cluster
from tests.support.sql import fetch_all

WRITER_COUNT = 16
POOL_SIZE = 6
KILLS = 5
# PgBouncer refuses such parameters (docs/operations.md).
NO_TIMEOUTS = dict.fromkeys(("DATABASE_LOCK_TIMEOUT", "DATABASE_STATEMENT_TIMEOUT", "DATABASE_IDLE_TIMEOUT"), "0")
CONFIGURATION = """
[databases]
* = host={server} user=postgres
[pgbouncer]
listen_port = 5432
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = {size}
"""


class Pooler:
    """A PgBouncer that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.start()

    def start(self) -> None:
        command = [shutil.which("pgbouncer") or "", "-q", str(self.folder / "pgbouncer.ini")]
        user = "nobody" if os.geteuid() == 0 else None
        self.process = subprocess.Popen(command, user=user, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def check_killed_pooler(options: Namespace) -> Iterator[Finding]:
    if not shutil.which("pgbouncer"):
        yield Finding("PgBouncer is killed", "NOT TRIED: apt-get install pgbouncer", 1)
        return
    with start_cluster() as cluster:
        library = migrate_library(cluster.url(), cluster)
        fill(library)
        with (
            start_pooler(cluster) as pooler,
            competitors.start_quiet_library(
                Cluster(pooler.folder).url(), LIBRARY_ACCESS="open", **NO_TIMEOUTS
            ) as server,
            writers.run_writers(f"http://127.0.0.1:{server.port}", WRITER_COUNT) as running,
        ):
            for _ in range(KILLS):
                wait_for_writes(running, 500)
                pooler.kill()
                pooler.start()
            seconds = wait_for_writes(running, 500)
        note_errors(running)
        fetch = partial(fetch_all, library.url)
        result = f"{writers.summarize_writes(fetch, running)}; back {seconds:.1f} s after the last start"
        wrong = writers.count_wrong(fetch, running, SEEDED_BOOK_COUNT)
        yield Finding(f"{KILLS} × kill -9 on PgBouncer, with a pool of {POOL_SIZE}", result, wrong)


@contextmanager
def start_pooler(cluster: Cluster) -> Iterator[Pooler]:
    folder = Path(tempfile.mkdtemp(prefix="library-pooler-", dir=SHORT_FOLDER))
    configuration = CONFIGURATION.format(server=cluster.sockets, folder=folder, size=POOL_SIZE)
    (folder / "pgbouncer.ini").write_text(configuration)
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    pooler = Pooler(folder)
    try:
        yield pooler
    finally:
        pooler.kill()
        shutil.rmtree(folder)
