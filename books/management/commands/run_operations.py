"""`manage.py run_operations`: runs the worker of operations."""

from argparse import ArgumentParser
from typing import Any

from books.operations import worker
from library_site.management.checked_command import CheckedCommand


class Command(CheckedCommand):
    help = "Does the operations on many books that people and apps began, until Ctrl-C; on any number of machines."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="stop when nothing is due any more")

    def handle(self, *args: Any, once: bool, **options: Any) -> None:
        worker.run(once, self.stdout.write)
