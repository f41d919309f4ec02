"""System checks for the triggers of the book table (`manage.py serve` and `manage.py deliver_webhooks`)."""

from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import DEFAULT_DB_ALIAS, OperationalError

from books.search.triggers import find_missing_triggers


@checks.register
def check_triggers(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    """Only the library's own processes fail. Other commands must start, because `migrate` creates the triggers."""
    if settings.LIBRARY_PROCESS == "command":
        return []
    # Requests report that the database is not available.
    with suppress(OperationalError):
        if names := find_missing_triggers(DEFAULT_DB_ALIAS):
            return [
                checks.Error(
                    f"Searches and lists of lent books do not follow changes: {', '.join(names)} is missing.",
                    hint="`manage.py migrate` makes it.",
                    id="books.E001",
                )
            ]
    return []
