"""Exports what is known of a person."""

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from typing import Any

from library_site.api.responses import encode_json
from library_site.json_lines import write_note
from library_site.management.checked_command import CheckedCommand
from oauth.management.personal_data import export_person
from oauth.management.users import get_person


class Command(CheckedCommand):
    help = "Writes all that is known of a person to standard output, as JSON and without secrets."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", metavar="NAME")

    def handle(self, *args: Any, username: str, **options: Any) -> None:
        person = get_person(username)
        if not person.user_id:
            text = f"There is no account {username}. This is what deleted accounts of this name left."
            write_note(self.stderr, text, "WARNING")
        for text in iter_object(export_person(person)):
            self.stdout.write(text, ending="")


def iter_object(fields: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """Yields a JSON object in parts. An iterator as a value becomes an array that is never in memory as a whole."""
    separator = "{"
    for name, value in fields:
        yield f"{separator}\n{encode_json(name).decode()}: "
        yield from iter_array(value) if isinstance(value, Iterator) else [encode_json(value).decode()]
        separator = ","
    yield "\n}\n"


def iter_array(items: Iterator[Any]) -> Iterator[str]:
    separator = "["
    for item in items:
        yield f"{separator}\n{encode_json(item).decode()}"
        separator = ","
    yield "]" if separator == "," else "[]"
