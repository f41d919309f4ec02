from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from books import idempotency


class Command(BaseCommand):
    help = "Deletes what is past its time: answers kept for requests with an Idempotency-Key."

    def handle(self, *args: Any, **options: Any) -> None:
        deleted = idempotency.clear_expired(now=timezone.now())
        self.stdout.write(f"{deleted} kept answers deleted.")
