"""Loads fixtures as Django's command does. It rejects books, and keeps the ids of deleted books reserved."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import loaddata

from books.models import UnrecordedWrite
from books.writing.id_sequence import raise_id_sequence
from library_site.management.checked_command import CheckedCommand


class Command(CheckedCommand, loaddata.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            super().handle(*args, **options)
        except UnrecordedWrite as error:
            raise CommandError(f"{error}") from error
        raise_id_sequence(options["database"])
