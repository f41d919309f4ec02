"""The folder in which the processes of a server share their counts (prometheus_client's multiprocess mode)."""

import os
from pathlib import Path

# prometheus_client reads it when it is imported: it must be set before.
DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


def prepare_directory(directory: Path) -> None:
    """Makes the folder and empties it. The processes of the server that starts will share it."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in directory.glob("*.db"):
        path.unlink()
    os.environ[DIRECTORY_VARIABLE] = str(directory)


def forget_dead_processes(directory: Path) -> None:
    """Deletes the gauges of processes that have ended, such as their busy threads. Their other counts stay."""
    for path in directory.glob("gauge_live*_*.db"):
        pid = path.stem.rpartition("_")[2]
        if not Path(f"/proc/{pid}").exists():
            path.unlink(missing_ok=True)
