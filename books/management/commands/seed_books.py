from argparse import ArgumentParser
from contextlib import nullcontext
from itertools import islice
from typing import Any

from django.core.management.base import CommandError
from django.db import transaction
from django.utils import timezone

from books.files import seeds
from books.files.deferred_indexes import analyze_books, defer_indexes
from books.files.progress import show_progress_bar
from books.models import Book
from books.writing import changes
from library_site.deployment.env import is_installed
from library_site.management.checked_command import CheckedCommand

SEED_BATCH = 10_000


class Command(CheckedCommand):
    help = "Adds real classics, then generated books, until the library holds the first N of a seed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--count", type=int, default=1_000, metavar="N", help="how many books (default: 1000)")
        parser.add_argument("--seed", type=int, default=0, metavar="S", help="0 to 8: other seeds, other books")
        parser.add_argument("--events", action="store_true", help="announce each book, as any other change")
        parser.add_argument("--if-empty", action="store_true", help="do nothing where there is any book")

    def handle(self, *args: Any, count: int, seed: int, events: bool, if_empty: bool, **options: Any) -> None:
        if seed not in seeds.SEEDS:
            raise CommandError(f"--seed takes {seeds.SEEDS.start} to {seeds.SEEDS.stop - 1}.")
        if not 0 <= count <= seeds.BOOKS_PER_SEED:
            raise CommandError(f"--count takes 0 to {seeds.BOOKS_PER_SEED}.")
        if not is_installed("faker"):
            raise CommandError("The example books need Faker, which this installation is without.")
        is_empty = not Book.objects.exists()
        if if_empty and not is_empty:
            return
        with transaction.atomic():
            with defer_indexes() if is_empty and count > SEED_BATCH else nullcontext():
                books = seeds.iter_books(count, seed)
                batches = iter(lambda: list(islice(books, SEED_BATCH)), [])
                added_count = sum(
                    len(changes.create_books(batch, None, now=timezone.now(), announce=events))
                    for batch in show_progress_bar(batches, "Adding example books", count)
                )
            # Indexes on expressions have their own statistics.
            analyze_books()
        present = f", {count - added_count} were there" if added_count < count else ""
        self.stdout.write(f"{added_count} books added{present}.")
