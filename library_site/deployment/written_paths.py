"""The paths that the library's processes write to."""

import os
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import connection

from library_site.db.writer_queue import WAL_SUFFIX

# Beside the database SQLite has this file, which its readers share.
SHM_SUFFIX = "-shm"


def list_folders() -> dict[str, Path]:
    """Returns the folders by the names that metrics have for them."""
    folders = {"data": settings.DATA_DIR}
    if database := find_database_file():
        folders["database"] = database.parent
    return folders


def find_database_file() -> Path | None:
    """Returns the file of SQLite, or None on PostgreSQL."""
    return Path(connection.settings_dict["NAME"]).absolute() if connection.vendor == "sqlite" else None


def iter_unwritable_paths() -> Iterator[Path]:
    """Yields the folders, and the files of SQLite that exist, that this process cannot write or create.

    The connections of a process share the -shm as the first of them has opened it: once read-only, it stays so.
    """
    for folder in dict.fromkeys(list_folders().values()):
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            yield folder
    if database := find_database_file():
        for file in (Path(f"{database}{suffix}") for suffix in ("", WAL_SUFFIX, SHM_SUFFIX)):
            if file.exists() and not os.access(file, os.R_OK | os.W_OK):
                yield file
    if settings.METRICS_TOKEN:
        # The server makes the folder, but cannot on a full disk.
        parent = next(filter(Path.exists, [settings.METRICS_DIR, *settings.METRICS_DIR.parents]))
        if not parent.is_dir() or not os.access(parent, os.R_OK | os.W_OK | os.X_OK):
            yield settings.METRICS_DIR
