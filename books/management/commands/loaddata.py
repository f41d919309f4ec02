"""Loads fixtures. It is Django's command; only the ids of deleted books stay theirs."""

from typing import Any

from django.core.management.commands import loaddata

from books.id_sequence import raise_id_sequence


class Command(loaddata.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        super().handle(*args, **options)
        raise_id_sequence(options["database"])
