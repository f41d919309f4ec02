"""`manage.py deliver_webhooks`: runs the worker."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection

from library_site.management.checked_command import CheckedCommand
from library_site.monitoring.tracing import start_tracing
from webhooks import worker


class Command(CheckedCommand):
    help = "Delivers events to their endpoints and works off received ones, until Ctrl-C; on any number of machines."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="stop when nothing is due any more")
        parser.add_argument(
            "--concurrency", type=int, default=500, metavar="N", help="deliveries at once (default: 500)"
        )

    def handle(self, *args: Any, once: bool, concurrency: int, **options: Any) -> None:
        if concurrency < 1:
            raise CommandError("--concurrency takes a number from 1.")
        if settings.TRACES_ENABLED:
            start_tracing()
        # That of the checks. The worker's threads have connections of their own.
        connection.close()
        worker.run(concurrency, self.stdout.write, once=once)
