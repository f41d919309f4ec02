"""Reads answers of SRU (Search/Retrieve via URL 1.1 and 1.2, Library of Congress) whose records are MARCXML."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import BytesIO
from typing import Any, cast
from unicodedata import normalize
from xml.etree.ElementTree import Element, ParseError

import pymarc
from defusedxml.common import DefusedXmlException
from django.utils.translation import gettext_noop as _
from rest_framework.exceptions import ValidationError

from books.files.catalogues.entries import CatalogueFailed
from books.files.columns.cells import read_year
from books.files.formats.marc_fields import describe_unimarc, list_isbn13s, read_values
from books.files.formats.marc_xml import NAMESPACE, build_pymarc_record, get_name, iter_elements
from books.files.formats.records import UnreadableFile
from books.files.parsing import COMPLETED_MEMBERS, parse_values

RESPONSE_NAME = "searchRetrieveResponse"
# Other schemas have elements of this name, too, and SRU itself.
RECORD_TAG = f"{{{NAMESPACE}}}record"
# Begin and end of what is left out where titles are sorted (ISO 6630), which German catalogues put around articles.
SORTING_MARKS = re.compile("[\x88\x89\x98\x9c]")
# What is wrong with a record is the same wherever it stands, but the first one of a file.
ANY_NUMBER = 2
# What is shown of a sentence of another server.
MAX_DIAGNOSTIC = 200


def read_answer(content: bytes, isbn13: str) -> dict[str, Any]:
    """Returns the valid values of the first record with this ISBN that has any, nothing if there are no records.

    Raises CatalogueFailed.
    """
    root = parse_response(content)
    records = list(iter_found(root))
    if not records:
        require_absence(root)
    named = [record for record in records if isbn13 in list_isbn13s(record)]
    if records and not named:
        raise CatalogueFailed(_("It answered with other books than the one with this ISBN."))
    return next(filter(None, map(read_members, named)), {})


def parse_response(content: bytes) -> Element:
    """Raises CatalogueFailed."""
    try:
        elements = [element for event, element in iter_elements(BytesIO(content)) if event == "start"]
    except (ParseError, DefusedXmlException, UnreadableFile, LookupError, ValueError) as error:
        raise CatalogueFailed(_("Its answer is no XML that can be read.")) from error
    if get_name(elements[0]) != RESPONSE_NAME:
        raise CatalogueFailed(_("Its answer is none of SRU."))
    return elements[0]


def require_absence(root: Element) -> None:
    """Raises CatalogueFailed for an answer that has no records for another reason than that there are none."""
    if message := find_diagnostic(root):
        raise CatalogueFailed(_("It refused the question: %(message)s"), message=message)
    if count_found(root) not in ("", "0"):
        raise CatalogueFailed(_("It has the book, and sent no record of MARC 21 in MARCXML."))


def find_diagnostic(root: Element) -> str:
    """Returns why the server refused the request. Records have diagnostics of their own."""
    diagnostics = next((child for child in root if get_name(child) == "diagnostics"), ())
    texts = {get_name(element): element.text or "" for diagnostic in diagnostics for element in diagnostic}
    words = " ".join((texts.get("message") or texts.get("details") or texts.get("uri") or "").split())
    return (words or "?")[:MAX_DIAGNOSTIC] if len(diagnostics) else ""


def count_found(root: Element) -> str:
    """Returns how many records there are, sent or not."""
    return next(((child.text or "").strip() for child in root if get_name(child) == "numberOfRecords"), "")


def iter_found(root: Element) -> Iterator[pymarc.Record]:
    """Yields the records of MARC 21. Some catalogues send UNIMARC under the same name."""
    for element in root.iter(RECORD_TAG):
        # A record without fields says nothing.
        with suppress(ValueError):
            record = build_pymarc_record(element)
            if not describe_unimarc(record, ANY_NUMBER):
                yield record


def read_members(record: pymarc.Record) -> dict[str, Any]:
    """Returns the valid values, without those that no book may have."""
    texts = {name: text for name, text in read_values(record).items() if name in COMPLETED_MEMBERS}
    # Some catalogues write an accent as a character of its own.
    cells: dict[str, Any] = {name: normalize("NFC", SORTING_MARKS.sub("", text)) for name, text in texts.items()}
    if "year" in cells:
        # Who asks looks at what a catalogue proposes, so a doubtful year is better than none.
        cells["year"] = read_year(cells["year"])[0]
    try:
        return parse_values(cells)
    except ValidationError as error:
        problems = cast("Mapping[str, Any]", error.detail)
        return parse_values({name: text for name, text in cells.items() if name not in problems})
