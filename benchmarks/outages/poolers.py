"""PgBouncer stands before PostgreSQL in transaction mode, and is killed amid writes."""

import os
import shutil
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.deliveries import migrate_library
from benchmarks.outages.running_writers import build_finding, fill, serve_writers, wait_for_writes
from benchmarks.support.findings import Finding
from tests.support.postgres import SHORT_FOLDER, Cluster, start_cluster

WRITER_COUNT = 16
POOL_SIZE = 6
KILLS = 5
# PgBouncer refuses such parameters (docs/operations/install.md).
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
            serve_writers(Cluster(pooler.folder).url(), WRITER_COUNT, **NO_TIMEOUTS) as (_, running),
        ):
            for _ in range(KILLS):
                wait_for_writes(running, 500)
                pooler.kill()
                pooler.start()
            seconds = wait_for_writes(running, 500)
        name = f"{KILLS} × kill -9 on PgBouncer, with a pool of {POOL_SIZE}"
        yield build_finding(name, library.url, running, f"back {seconds:.1f} s after the last start")


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
