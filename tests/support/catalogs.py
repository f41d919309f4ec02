"""Reads gettext's catalogs: the sources, which people edit, and the compiled ones, which Django reads."""

import ast
import gettext
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Message(NamedTuple):
    """A text and its translations, of which a text with a plural has several."""

    context: str
    text: str
    plural: str
    translations: tuple[str, ...]
    flags: str


def read_source(path: Path) -> Iterator[Message]:
    """Yields the messages of a .po file, without its header."""
    for entry in path.read_text().split("\n\n"):
        values: dict[str, str] = {}
        flags = field = ""
        for line in entry.splitlines():
            if line.startswith("#"):
                flags += line[2:] if line.startswith("#,") else ""
                continue
            if not line.startswith('"'):
                field, _, line = line.partition(" ")
            values[field] = values.get(field, "") + str(ast.literal_eval(line))
        if values.get("msgid"):
            translations = tuple(value for name, value in values.items() if name.startswith("msgstr"))
            context, plural = values.get("msgctxt", ""), values.get("msgid_plural", "")
            yield Message(context, values["msgid"], plural, translations, flags)


def read_compiled(path: Path) -> dict[object, str]:
    """Returns the messages of a .mo file: a text with a plural has the number of the form in its key."""
    with path.open("rb") as file:
        catalog: dict[object, str] = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]  # not public
    return {key: text for key, text in catalog.items() if key}


def compile_messages(messages: Iterator[Message]) -> dict[object, str]:
    """Returns what `read_compiled` returns for these messages."""
    compiled: dict[object, str] = {}
    for message in messages:
        key = f"{message.context}\x04{message.text}" if message.context else message.text
        if message.plural:
            compiled |= {(key, number): text for number, text in enumerate(message.translations)}
        else:
            compiled[key] = message.translations[0]
    return compiled
