"""The folder in which the processes of a server share their counts (prometheus_client's multiprocess mode).

prometheus_client maps files into memory, and the files that it creates are sparse. On a full disk, the kernel kills a
process that writes to a hole (SIGBUS). So this module allocates the blocks of each file first.
"""

import os
from contextlib import suppress
from pathlib import Path

# prometheus_client reads this variable on import, so it must be set before.
DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
# The files of a process, by what prometheus_client writes to each.
KINDS = ("counter", "gauge_livesum", "histogram")
# More bytes than all samples of one child of a histogram need, and more than a file of the other kinds needs.
SERIES_SIZE = 4096


def prepare_directory(directory: Path) -> None:
    """Creates the folder or empties it. The processes of the new server share it."""
    # On a full disk there may be no folder: then `create_files` fails.
    with suppress(OSError):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in directory.glob("*.db"):
        path.unlink()
    os.environ[DIRECTORY_VARIABLE] = str(directory)


def create_files(directory: Path) -> None:
    """Creates the files of this process. If it raises OSError, it has deleted them again."""
    try:
        for kind in KINDS:
            # An older process with the same id has ended.
            get_metrics_path(directory, kind).unlink(missing_ok=True)
            allocate(directory, kind, SERIES_SIZE)
    except OSError:
        for kind in KINDS:
            get_metrics_path(directory, kind).unlink(missing_ok=True)
        raise


def allocate(directory: Path, kind: str, size: int) -> None:
    """Allocates the blocks of a file of this process up to this size. Raises OSError."""
    with get_metrics_path(directory, kind).open("ab") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def get_metrics_path(directory: Path, kind: str) -> Path:
    return directory / f"{kind}_{os.getpid()}.db"


def forget_dead_processes(directory: Path) -> None:
    """Deletes the gauges of processes that have ended, such as their busy threads. Their other counts stay."""
    for path in directory.glob("gauge_live*_*.db"):
        pid = path.stem.rpartition("_")[2]
        if not Path(f"/proc/{pid}").exists():
            path.unlink(missing_ok=True)
