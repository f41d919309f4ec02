"""Starts a temporary PostgreSQL server from the binaries of the system, and deletes it at the end."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from tests.support.programs import find_command
from tests.support.waiting import PROCESS_TIMEOUT

# A socket has a short path.
SHORT_FOLDER = "/tmp"  # noqa: S108  # mkdtemp makes a folder of its own in it


class PostgresMissing(Exception):
    """This machine has no PostgreSQL binaries."""


class Cluster:
    """A running server. It listens on one Unix socket; the superuser `postgres` connects without a password."""

    def __init__(self, sockets: Path) -> None:
        self.sockets = sockets

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@{quote(str(self.sockets), safe='')}/{database}"

    def run(self, sql: str, database: str = "postgres") -> None:
        command = ["psql", "-qX", "-v", "ON_ERROR_STOP=1", "-h", str(self.sockets), "-U", "postgres", "-d", database]
        subprocess.run([*command, "-c", sql], check=True, timeout=PROCESS_TIMEOUT)


@contextmanager
def start_cluster(parent: str = SHORT_FOLDER, **settings: str) -> Iterator[Cluster]:
    """Yields a new cluster, in a folder below `parent`; `settings` are lines of its postgresql.conf.

    An example is `fsync="off"`.
    """
    initdb, pg_ctl = find_binary("initdb"), find_binary("pg_ctl")
    home = Path(tempfile.mkdtemp(prefix="library-pg-", dir=parent))
    data, log = home / "data", home / "log"
    options = {"listen_addresses": "''", "unix_socket_directories": f"'{home}'", **settings}
    try:
        if os.geteuid() == 0:
            shutil.chown(home, "nobody")
        call = [initdb, "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        run_unprivileged(*call)
        with (data / "postgresql.conf").open("a") as configuration:
            configuration.writelines(f"{name} = {value}\n" for name, value in options.items())
        run_unprivileged(pg_ctl, "-D", str(data), "-l", str(log), "-w", "start")
        try:
            yield Cluster(home)
        finally:
            # It may have ended already, where its end is what is tried.
            with suppress(subprocess.CalledProcessError):
                run_unprivileged(pg_ctl, "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home)


def find_binary(name: str) -> str:
    """Returns the path of a server binary. Raises PostgresMissing if there is none."""
    path = find_command(name)
    if not path:
        raise PostgresMissing(name)
    return path


def run_unprivileged(*command: str) -> None:
    """Runs the command as `nobody` if we are root: initdb and pg_ctl refuse to run as root."""
    prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    subprocess.run([*prefix, *command], check=True, stdout=subprocess.DEVNULL, cwd="/", timeout=PROCESS_TIMEOUT)
