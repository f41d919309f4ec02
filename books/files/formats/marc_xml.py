"""Reads and writes MARC 21 records as MARCXML (Library of Congress, MARC21slim)."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO
from xml.etree.ElementTree import Element, ParseError, tostring
from xml.sax.saxutils import escape, quoteattr

import pymarc
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from books.files.formats.marc_fields import build_record, parse_record
from books.files.formats.records import (
    COLUMNS,
    Pages,
    Record,
    Rejected,
    Table,
    UnreadableFile,
    UnreadableRecord,
    name_field,
)

NAMESPACE = "http://www.loc.gov/MARC21/slim"
HEAD = f'<?xml version="1.0" encoding="UTF-8"?>\n<collection xmlns="{NAMESPACE}">\n'.encode()
TAIL = b"</collection>\n"
# Where OAI-PMH and SRU say how the rest is asked for.
MORE_RECORDS = ("resumptionToken", "nextRecordPosition")
EMPTY_LEADER = " " * 24


def read_marcxml(stream: BinaryIO, encoding_name: str = "") -> Table:
    left_out = Counter[str]()
    return Table(COLUMNS, iter_records(stream, left_out), "MARCXML", left_out=left_out)


def iter_records(stream: BinaryIO, left_out: Counter[str]) -> Iterator[Record]:
    """Raises UnreadableFile at the first error in the XML, because the rest cannot be parsed."""
    stream.seek(0)
    number = 0
    try:
        for element in iter_record_elements(stream, left_out):
            number += 1
            yield parse_element(number, element, left_out)
    except ParseError as error:
        line, column = error.position
        sentence = ngettext(
            "The XML has an error on line %(line)d, column %(column)d, behind %(count)d record.",
            "The XML has an error on line %(line)d, column %(column)d, behind %(count)d records.",
            number,
        )
        raise UnreadableFile(sentence % {"line": line, "column": column + 1, "count": number}) from error
    except DefusedXmlException as error:
        message = _("The XML defines a document type or entities. Such files are not read.")
        raise UnreadableFile(message) from error
    except (LookupError, ValueError) as error:
        # The parser supports only UTF-8 and UTF-16 of the multi-byte encodings.
        raise UnreadableFile(_("The XML names an encoding that is not known. Store it as UTF-8.")) from error


def iter_record_elements(stream: BinaryIO, left_out: Counter[str]) -> Iterator[Element]:
    """Yields the records without envelopes of the same name (OAI-PMH, SRU), and counts what is not sent."""
    ancestors: list[Element] = []
    # What is known of each ancestor: that a record is in it, or that its header says it is deleted.
    marks: list[set[str]] = []
    for event, element in iter_xml_elements(stream):
        if event == "start":
            ancestors.append(element)
            marks.append(set())
            continue
        ancestors.pop()
        own_marks, name = marks.pop(), get_name(element)
        if name in MORE_RECORDS and (element.text or "").strip():
            left_out[_("further records on the server")] += 1
        if name == "header" and element.get("status") == "deleted":
            left_out[_("deleted records")] += 1
            marks[-1:] = [{"deleted"}]
        if name == "record":
            if not own_marks and not any("deleted" in mark for mark in marks):
                yield element
            marks = [{*mark, "envelope"} for mark in marks]
            element.clear()
            # Otherwise the whole file would be in memory at the end.
            for ancestor in ancestors:
                ancestor.clear()


def iter_xml_elements(stream: BinaryIO) -> Iterator[tuple[str, Element]]:
    """Yields each element at its start and at its end. Raises the errors that `iter_records` translates.

    With `forbid_dtd`, a file cannot define entities, whose expansion could fill the memory.
    """
    yield from iterparse(stream, events=("start", "end"), forbid_dtd=True)


def get_name(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def parse_element(number: int, element: Element, left_out: Counter[str]) -> Record:
    """The element is emptied when the next record is read."""
    try:
        return parse_record(build_pymarc_record(element, left_out), number, element, left_out)
    except UnreadableRecord as error:
        return Record(number, {}, element, name_field("record", str(error)))


def build_pymarc_record(element: Element, left_out: Counter[str]) -> pymarc.Record:
    """Raises UnreadableRecord."""
    record = pymarc.Record(leader=EMPTY_LEADER)
    for child in element:
        name, tag = get_name(child), child.get("tag", "")
        if name == "leader":
            record.leader = pymarc.Leader((child.text or "").ljust(24)[:24])
        elif name == "controlfield":
            record.add_field(pymarc.Field(tag, data=join_text(child)))
        elif name == "datafield":
            indicators = pymarc.Indicators(*((child.get(name) or " ")[:1] for name in ("ind1", "ind2")))
            parts = (part for part in child if get_name(part) == "subfield")
            subfields = [pymarc.Subfield(part.get("code", ""), join_text(part)) for part in parts]
            record.add_field(pymarc.Field(tag, indicators, subfields))
            if (child.text or "").strip():
                left_out[_("text outside of the subfields of %(tag)s") % {"tag": tag}] += 1
        else:
            left_out[f"<{name}>"] += 1
    if not record.fields:
        raise UnreadableRecord(_("It has no fields."))
    return record


def join_text(element: Element) -> str:
    """Returns the text with that of the elements in it, such as marks of what was searched."""
    return "".join(element.itertext()) if len(element) else element.text or ""


def write_marcxml(pages: Pages) -> Iterator[bytes]:
    yield HEAD
    for page in pages:
        yield "".join([format_record(build_record(book)) for book in page]).encode()
    yield TAIL


def format_record(record: pymarc.Record) -> str:
    fields = "".join(format_field(field) for field in record.fields)
    return f"<record><leader>{record.leader}</leader>{fields}</record>\n"


def format_field(field: Any) -> str:
    if field.control_field:
        return f"<controlfield tag={quoteattr(field.tag)}>{escape(field.data)}</controlfield>"
    subfields = "".join(
        f"<subfield code={quoteattr(subfield.code)}>{escape(subfield.value)}</subfield>" for subfield in field.subfields
    )
    first, second = map(quoteattr, field.indicators)
    return f"<datafield tag={quoteattr(field.tag)} ind1={first} ind2={second}>{subfields}</datafield>"


def write_rejected_marcxml(table: Table, rejected: Rejected) -> Iterator[bytes]:
    """Writes the records as they are in the file, each after a comment with its number and the reason."""
    yield HEAD
    for record, reason in rejected:
        # Two hyphens are not allowed in a comment (XML 1.0, 2.5).
        yield f"<!-- Record {record.line}: {reason.replace('--', '- -')} -->\n".encode()
        yield tostring(record.raw, encoding="utf-8").strip() + b"\n"
    yield TAIL
