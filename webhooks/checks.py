"""System checks of the stream of events (`manage.py serve` and `manage.py deliver_webhooks`)."""

from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import OperationalError, ProgrammingError

from webhooks.stream import is_from_elsewhere


@checks.register
def check_restored_stream(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    """Runs only for `serve` and `deliver_webhooks`: `after_restore`, which repairs this, must be able to start."""
    if settings.LIBRARY_PROCESS == "command":
        return []
    # Other checks report a database that is down or not migrated.
    with suppress(OperationalError, ProgrammingError):
        if is_from_elsewhere():
            return [
                checks.Error(
                    "The database was restored from a backup, and the stream of events would skip new ones.",
                    hint="`manage.py after_restore` begins the stream anew.",
                    id="webhooks.E001",
                )
            ]
    return []
