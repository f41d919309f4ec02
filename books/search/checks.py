"""System checks of the search index (`manage.py serve` and `manage.py deliver_webhooks`)."""

from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import DEFAULT_DB_ALIAS, OperationalError

from books.search.index import find_missing_triggers


@checks.register
def check_search_index(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    """Other processes than the library's own must start: `migrate` makes the triggers."""
    if settings.LIBRARY_PROCESS == "command":
        return []
    # Requests say that the database is away.
    with suppress(OperationalError):
        if names := find_missing_triggers(DEFAULT_DB_ALIAS):
            return [
                checks.Error(
                    f"The search index does not follow changes: {', '.join(names)} is missing.",
                    hint="`manage.py migrate` makes it.",
                    id="books.E001",
                )
            ]
    return []
