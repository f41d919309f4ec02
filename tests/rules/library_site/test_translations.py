"""The German catalog is complete, and the compiled one is that of its source."""

import re
from pathlib import Path

from django.conf import settings

from tests.support.catalogs import compile_messages, read_compiled, read_source

SOURCE = Path(settings.LOCALE_PATHS[0], "de", "LC_MESSAGES", "django.po")
IN_F_STRING = re.compile(r"\{(?:_|n?gettext)\('.*")
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|\{\w*\}|<[^>]+>")


def list_placeholders(text: str) -> list[str]:
    return sorted(PLACEHOLDER.findall(text))


def test_each_text_has_a_german_one() -> None:
    messages = list(read_source(SOURCE))
    assert len(messages) > 500
    assert [message.text for message in messages if not all(message.translations)] == []
    assert [message.text for message in messages if "fuzzy" in message.flags] == []


def test_each_translation_has_the_placeholders_of_its_text() -> None:
    wrong = [
        message.text
        for message in read_source(SOURCE)
        for text in message.translations
        if list_placeholders(text) not in (list_placeholders(message.text), list_placeholders(message.plural))
    ]
    assert wrong == []


def test_no_text_is_marked_inside_an_f_string() -> None:
    """GNU gettext does not look there, so that the text would stay English."""
    files = [file for app in settings.OWN_APPS for file in (settings.BASE_DIR / app).rglob("*.py")]
    assert len(files) > 300
    assert [(file.name, match[0]) for file in files for match in IN_F_STRING.finditer(file.read_text())] == []


def test_the_compiled_catalog_is_that_of_the_source() -> None:
    assert read_compiled(SOURCE.with_suffix(".mo")) == compile_messages(read_source(SOURCE))
