from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from books.api import idempotency
from oauth import purges as oauth
from webhooks import purges as webhooks


class Command(BaseCommand):
    help = "Deletes what is past its time: kept answers, events, and codes, tokens, keys and sign-ins that are over."

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        counts = {"kept answers": idempotency.clear_expired(now)}
        counts |= oauth.clear_expired(now) | webhooks.clear_expired(now)
        for kind, count in counts.items():
            self.stdout.write(f"{count} {kind} deleted.")
