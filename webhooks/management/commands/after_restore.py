"""Sets what a restored backup cannot carry."""

from typing import Any

from django.utils import timezone

from library_site.db.sql import execute
from library_site.management.checked_command import CheckedCommand
from webhooks.stream import restart_stream


class Command(CheckedCommand):
    help = "Sets what a restored backup cannot carry. Run it after `deploy`, before the library starts."

    def handle(self, *args: Any, **options: Any) -> None:
        restart_stream(timezone.now())
        # pg_restore brings no statistics, without which the planner chooses slow plans.
        execute("ANALYZE")
        self.stdout.write(
            "The stream of events begins anew: readers with an older cursor get 410 and begin without one."
        )
