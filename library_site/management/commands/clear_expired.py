"""Deletes expired rows of all apps."""

from typing import Any

from django.utils import timezone

from library_site.jobs.expiry import delete_expired
from library_site.management.checked_command import CheckedCommand


class Command(CheckedCommand):
    help = "Deletes what is past its time: kept answers, events, codes, tokens, keys, sign-ins and old history."

    def handle(self, *args: Any, **options: Any) -> None:
        for kind, count in delete_expired(timezone.now()).items():
            self.stdout.write(f"{count} {kind} deleted.")
