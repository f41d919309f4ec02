"""Files that only their owner can read."""

import os
from pathlib import Path


def create_private(path: Path, content: bytes) -> None:
    """Raises FileExistsError."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_private(path: Path, content: bytes) -> None:
    """Readers see the old file or the complete new one."""
    new_path = path.with_name(f"{path.name}.new")
    new_path.unlink(missing_ok=True)
    create_private(new_path, content)
    new_path.replace(path)
