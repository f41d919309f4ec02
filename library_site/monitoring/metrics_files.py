"""The folder in which the processes of a server share their counts (prometheus_client's multiprocess mode).

prometheus_client maps the files, and leaves holes in those that it makes. The kernel ends a process that writes to a
hole while the disk is full (SIGBUS), so each file gets its blocks here first.
"""

import os
from contextlib import suppress
from pathlib import Path

# prometheus_client reads it when it is imported: it must be set before.
DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
# The files of a process, by what prometheus_client writes to each.
KINDS = ("counter", "gauge_livesum", "histogram")
# More bytes than all samples of one histogram with its labels take, and than a file of the other kinds.
SERIES_SIZE = 4096


def prepare_directory(directory: Path) -> None:
    """Makes the folder and empties it. The processes of the server that starts will share it."""
    # On a full disk there may be none: `create_files` fails then.
    with suppress(OSError):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in directory.glob("*.db"):
        path.unlink()
    os.environ[DIRECTORY_VARIABLE] = str(directory)


def create_files(directory: Path) -> None:
    """Makes the files of this process. Raises OSError, and leaves none then."""
    try:
        for kind in KINDS:
            # A process that had the same id has ended.
            get_path(directory, kind).unlink(missing_ok=True)
            allocate(directory, kind, SERIES_SIZE)
    except OSError:
        for kind in KINDS:
            get_path(directory, kind).unlink(missing_ok=True)
        raise


def allocate(directory: Path, kind: str, size: int) -> None:
    """Gives a file of this process its blocks up to this size. Raises OSError."""
    with get_path(directory, kind).open("ab") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def get_path(directory: Path, kind: str) -> Path:
    return directory / f"{kind}_{os.getpid()}.db"


def forget_dead_processes(directory: Path) -> None:
    """Deletes the gauges of processes that have ended, such as their busy threads. Their other counts stay."""
    for path in directory.glob("gauge_live*_*.db"):
        pid = path.stem.rpartition("_")[2]
        if not Path(f"/proc/{pid}").exists():
            path.unlink(missing_ok=True)
