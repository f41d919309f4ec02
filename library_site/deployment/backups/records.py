"""Records the time of this machine's last backup."""

from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings

FILE_NAME = "last_backup"


def get_path() -> Path:
    return Path(settings.DATA_DIR) / FILE_NAME


def record_backup(now: datetime) -> None:
    """Raises OSError."""
    get_path().write_text(now.astimezone(UTC).isoformat())


def read_backup_time() -> datetime | None:
    """Returns None if there is no backup, or if the record cannot be read."""
    try:
        return datetime.fromisoformat(get_path().read_text())
    except (OSError, ValueError):
        return None
