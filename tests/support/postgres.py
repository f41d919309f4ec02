"""A throw-away PostgreSQL, made from the system's own binaries and gone when the block ends."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote


class PostgresMissing(Exception):
    """This machine has no PostgreSQL binaries."""


class Cluster:
    """A running server that answers on one Unix socket, to the superuser `postgres`, without a password."""

    def __init__(self, sockets: Path) -> None:
        self.sockets = sockets

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@{quote(str(self.sockets), safe='')}/{database}"

    def run(self, sql: str, database: str = "postgres") -> None:
        call = ["psql", "-qX", "-v", "ON_ERROR_STOP=1", "-h", str(self.sockets), "-U", "postgres", "-d", database]
        subprocess.run([*call, "-c", sql], check=True)


@contextmanager
def throwaway_cluster(**settings: str) -> Iterator[Cluster]:
    """Yields a new cluster; `settings` are lines of its postgresql.conf, such as `fsync="off"`."""
    initdb, pg_ctl = binary("initdb"), binary("pg_ctl")
    home = Path(tempfile.mkdtemp(prefix="library-pg-", dir="/tmp"))
    data, log = home / "data", home / "log"
    options = {"listen_addresses": "''", "unix_socket_directories": f"'{home}'", **settings}
    try:
        if os.geteuid() == 0:
            shutil.chown(home, "nobody")
        call = [initdb, "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        unprivileged(*call)
        with (data / "postgresql.conf").open("a") as configuration:
            configuration.writelines(f"{name} = {value}\n" for name, value in options.items())
        unprivileged(pg_ctl, "-D", str(data), "-l", str(log), "-w", "start")
        try:
            yield Cluster(home)
        finally:
            unprivileged(pg_ctl, "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home)


def binary(name: str) -> str:
    """The path of a server binary; Debian keeps them by version, off the PATH."""
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4]))
    found = shutil.which(name) or (versions and str(versions[-1]))
    if not found:
        raise PostgresMissing(name)
    return found


def unprivileged(*command: str) -> None:
    """initdb and pg_ctl refuse root, so root hands them to `nobody`."""
    prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    subprocess.run([*prefix, *command], check=True, stdout=subprocess.DEVNULL, cwd="/")
