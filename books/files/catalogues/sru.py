"""Queries the catalogues of SRU_SERVERS (Search/Retrieve via URL 1.1 and 1.2, Library of Congress), and parses their
responses with records in MARCXML.

Requests have limits of time and size, and follow no redirects.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import aclosing, suppress
from io import BytesIO
from typing import Any, cast
from unicodedata import normalize
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element, ParseError

import pymarc
from defusedxml.common import DefusedXmlException
from django.conf import settings
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _
from rest_framework.exceptions import ValidationError

from books.book.isbn import find_isbn, normalize_isbn, to_isbn10
from books.files.columns.cells import read_year
from books.files.formats.marc_fields import describe_other_kind, group_fields, iter_kinds, read_fields
from books.files.formats.marc_xml import NAMESPACE, build_pymarc_record, get_name, iter_xml_elements
from books.files.formats.records import UnreadableFile, UnreadableRecord
from books.files.parsing import COMPLETED_FIELDS, parse_values
from library_site.outbound.addresses import ForbiddenAddress
from library_site.outbound.client import Client, ResponseTooLong

log = logging.getLogger(__name__)

# About ten records of a national library.
MAX_ANSWER_BYTES = 2**18
# The headers, and the body with any transfer encoding.
MAX_RESPONSE_TRAFFIC = 2 * MAX_ANSWER_BYTES
HEADERS = {"Accept": "application/sru+xml, application/xml, text/xml, */*;q=0.1"}
# The host of a catalogue and the values of its entry, and why those asked before it returned none.
Found = tuple[tuple[str, dict[str, Any]] | None, list[str]]
RESPONSE_NAME = "searchRetrieveResponse"
# Other schemas, and SRU itself, have elements with the same name.
RECORD_TAG = f"{{{NAMESPACE}}}record"
# The reader of a file raises an error if the first record is wrong. This number is not that of the first one.
ANY_NUMBER = 2
# The page shows at most so many characters of another server's message.
MAX_DIAGNOSTIC = 200


class CatalogueFailed(Exception):
    """A catalogue did not say whether it has the book. `text` is marked for translation; the log has it in English."""

    def __init__(self, text: str, **details: Any) -> None:
        super().__init__(text % details)
        self.text, self.details = text, details

    def describe(self) -> str:
        return gettext(self.text) % self.details


async def ask_servers(isbn13: str, seconds: float) -> Found:
    """Returns within so many seconds."""
    allow_private: bool = settings.SRU_ALLOW_PRIVATE
    async with aclosing(Client(seconds, MAX_RESPONSE_TRAFFIC, allow_private, HEADERS)) as client:
        return await ask_in_turn(client, isbn13, seconds)


async def ask_in_turn(client: Client, isbn13: str, seconds: float) -> Found:
    """Queries one server after the other. A slow server leaves time for the others."""
    timer, templates = asyncio.get_running_loop().time, settings.SRU_SERVERS
    deadline, problems = timer() + seconds, []
    for index, template in enumerate(templates):
        share = (deadline - timer()) / (len(templates) - index)
        # An old record has an ISBN of 10 digits, and not every catalogue converts it.
        url = template.replace("{isbn}", isbn13).replace("{isbn10}", to_isbn10(isbn13))
        host = urlsplit(url).hostname
        try:
            values = read_response(await fetch(client, url, share), isbn13)
        except CatalogueFailed as failure:
            reason = " ".join([str(failure), *([repr(failure.__cause__)] if failure.__cause__ else [])])
            log.warning("The catalogue at %s says nothing. %s", host, reason)
            problems.append(f"{host}: {failure.describe()}")
        else:
            if values:
                return (str(host), values), problems
    return None, problems


async def fetch(client: Client, url: str, seconds: float) -> bytes:
    """Raises CatalogueFailed."""
    try:
        async with asyncio.timeout(seconds):
            response = await client.request("GET", url)
    # A server can cause any error, and none of them is a fault of this program.
    except Exception as error:
        raise CatalogueFailed(describe_catalogue_error(error)) from error
    if 300 <= response.status < 400:
        # A redirect could point to an internal address.
        raise CatalogueFailed(_("It refers to another address, which is not followed."))
    if response.status != 200:
        raise CatalogueFailed(_("It answered with the status %(status)d."), status=response.status)
    if failure := response.error or (ResponseTooLong() if len(response.body) > MAX_ANSWER_BYTES else None):
        raise CatalogueFailed(describe_catalogue_error(failure)) from failure
    return bytes(response.body)


def describe_catalogue_error(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return _("It did not answer in time.")
    if isinstance(error, ForbiddenAddress):
        return _("Its address is not a public one.")
    if isinstance(error, ResponseTooLong):
        return _("Its answer is too large.")
    return _("It cannot be reached, or the connection broke.")


def read_response(content: bytes, isbn13: str) -> dict[str, Any]:
    """Returns the values of the first record with this ISBN and any valid value; empty if there are no records.

    Raises CatalogueFailed.
    """
    root = parse_response(content)
    records = list(iter_found(root))
    if not records:
        require_absence(root)
    named = [record for record in records if has_isbn(record, isbn13)]
    if records and not named:
        raise CatalogueFailed(_("It answered with other books than the one with this ISBN."))
    return next(filter(None, map(read_marc_fields, named)), {})


def parse_response(content: bytes) -> Element:
    """Raises CatalogueFailed."""
    try:
        elements = [element for event, element in iter_xml_elements(BytesIO(content)) if event == "start"]
    except (ParseError, DefusedXmlException, UnreadableFile, LookupError, ValueError) as error:
        raise CatalogueFailed(_("Its answer is no XML that can be read.")) from error
    if get_name(elements[0]) != RESPONSE_NAME:
        raise CatalogueFailed(_("Its answer is none of SRU."))
    return elements[0]


def require_absence(root: Element) -> None:
    """Raises CatalogueFailed if the response has no records for any other reason than that there are none."""
    if message := find_diagnostic(root):
        raise CatalogueFailed(_("It rejected the request: %(message)s"), message=message)
    number = next((child.text or "" for child in root if get_name(child) == "numberOfRecords"), "")
    if number.strip() not in ("", "0"):
        raise CatalogueFailed(_("It has the book, and sent no record of MARC 21 in MARCXML."))


def find_diagnostic(root: Element) -> str:
    """Returns why the server rejected the request. Records have their own diagnostics."""
    diagnostics = next((child for child in root if get_name(child) == "diagnostics"), ())
    texts = {get_name(element): element.text or "" for diagnostic in diagnostics for element in diagnostic}
    words = " ".join((texts.get("message") or texts.get("details") or texts.get("uri") or "").split())
    return (words or "?")[:MAX_DIAGNOSTIC] if len(diagnostics) else ""


def iter_found(root: Element) -> Iterator[pymarc.Record]:
    """Yields the MARC 21 records. Some catalogues send UNIMARC under the same name."""
    for element in root.iter(RECORD_TAG):
        # A record without fields is ignored.
        with suppress(UnreadableRecord):
            record = build_pymarc_record(element, Counter())
            fields = group_fields(record)
            if not describe_other_kind(record, fields, iter_kinds(record, fields), ANY_NUMBER):
                yield record


def has_isbn(record: pymarc.Record, isbn13: str) -> bool:
    texts = (text for field in record.get_fields("020") for text in field.get_subfields("a"))
    return isbn13 in (normalize_isbn(find_isbn(text)) for text in texts)


def read_marc_fields(record: pymarc.Record) -> dict[str, Any]:
    """Returns the valid values of a record, without values that a book may not have."""
    values, _warnings = read_fields(record, group_fields(record), Counter())
    texts = {name: text for name, text in values.items() if name in COMPLETED_FIELDS}
    # Some catalogues write an accent as a separate character.
    cells: dict[str, Any] = {name: normalize("NFC", text) for name, text in texts.items()}
    if "year" in cells:
        # The librarian checks the proposal, so a doubtful year is better than none.
        cells["year"] = read_year(cells["year"])[0]
    try:
        return parse_values(cells)
    except ValidationError as error:
        problems = cast("Mapping[str, Any]", error.detail)
        return parse_values({name: text for name, text in cells.items() if name not in problems})
