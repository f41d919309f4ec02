"""What is read of a response of SRU: the values of the book that was asked for, or why nothing is."""

from typing import Any

import pytest

from books.files.catalogues.sru import CatalogueFailed, read_response
from tests.support.sru_servers import DIAGNOSTICS, ISBN, build_record, build_response

VALUES = {"title": "Emma", "author": "Austen, Jane", "year": 1815, "genre": "Novel"}
ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">{}]>'.format(
    "".join(f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in zip("abcdefgh", "bcdefghi", strict=True))
)


def read(*records: str) -> dict[str, Any]:
    return read_response(build_response(*records), ISBN)


def read_failure(content: bytes) -> str:
    with pytest.raises(CatalogueFailed) as failure:
        read_response(content, ISBN)
    return str(failure.value)


OTHER_ISBN = '<datafield tag="020"><subfield code="a">9780141439518</subfield></datafield>'
EMPTY = '<record xmlns="http://www.loc.gov/MARC21/slim"/>'
NOTHING = build_record(m245a="", m100a="", m264c="", m655a="")
# The records of a response, and what their values have in place of the usual ones, None for nothing.
FOUND: list[tuple[list[str], dict[str, Any]]] = [
    ([build_record()], {}),
    # The ISBN may be in any writing, and among others.
    *(
        ([build_record(m020a=isbn).replace("</leader>", f"</leader>{OTHER_ISBN}")], {})
        for isbn in ("0141439580", "978-0-14-143958-7", "9780141439587 (Penguin)")
    ),
    # What a record does not say, or no book may have, is missing.
    ([build_record(m655a="", m264c="")], {"genre": None, "year": None}),
    ([build_record(m245a="E" * 1001)], {"title": None}),
    ([build_record(m245a="Em&#x0;ma")], {"title": None}),
    ([build_record(m655a=" ")], {"genre": None}),
    ([build_record(m264c="[?]")], {"year": None}),
    # A mark for sorting is no part of a title, and an accent is one of its letter.
    ([build_record(m245a="\x98Die\x9c Verwandlung")], {"title": "Die Verwandlung"}),
    ([build_record(m245a="Cafe\u0301")], {"title": "Café"}),
    # The first record with the ISBN and a value counts.
    ([build_record(m020a="9780141439518", m245a="Pride"), EMPTY, NOTHING, build_record(), build_record(m245a="X")], {}),
]


@pytest.mark.parametrize(("records", "others"), FOUND)
def test_a_record_has_the_values_of_a_book(records: list[str], others: dict[str, Any]) -> None:
    assert read(*records) == {name: value for name, value in {**VALUES, **others}.items() if value is not None}


def test_other_books_are_a_failure_and_no_record_is_none() -> None:
    assert "other books" in read_failure(build_response(build_record(m020a="9780141439518")))
    assert "other books" in read_failure(build_response(build_record(m020a="")))
    assert read() == {}


DUBLIN_CORE = build_response('<record xmlns="http://purl.org/dc/elements/1.1/"><title>Emma</title></record>')
MARCXCHANGE = build_response(build_record().replace("http://www.loc.gov/MARC21/slim", "info:lc/xmlns/marcxchange-v2"))
UNIMARC = build_response(build_record(m245a="", m100a="", m200a="Emma", m010a=ISBN))
NOT_SENT = build_response().replace(b"numberOfRecords>0", b"numberOfRecords> 1 ")


@pytest.mark.parametrize(
    "content",
    [DUBLIN_CORE, MARCXCHANGE, UNIMARC, NOT_SENT, build_response(EMPTY)],
)
def test_a_book_without_a_record_in_marcxml_is_not_absent(content: bytes) -> None:
    assert read_failure(content) == "It has the book, and sent no record of MARC 21 in MARCXML."


def test_version_2_and_a_missing_number_are_read_as_well() -> None:
    content = build_response(build_record()).replace(
        b"http://www.loc.gov/zing/srw/", b"http://docs.oasis-open.org/ns/search-ws/sruResponse"
    )
    assert read_response(content.replace(b"numberOfRecords>", b"resultCount>"), ISBN) == VALUES
    assert read_response(build_response().replace(b"numberOfRecords>", b"resultCount>"), ISBN) == {}


def test_a_refusal_is_passed_on_and_a_warning_beside_records_is_none() -> None:
    assert read_failure(build_response(diagnostics=DIAGNOSTICS)) == "It rejected the request: Unsupported index"
    assert read_response(build_response(build_record(), diagnostics=DIAGNOSTICS), ISBN) == VALUES
    diagnostic = '<diagnostic xmlns="http://www.loc.gov/zing/srw/diagnostic/"><message>x</message></diagnostic>'
    assert read(f"<diagnostics>{diagnostic}</diagnostics>", build_record()) == VALUES


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html><p>Service unavailable",
        build_response(build_record())[:-1],
        build_response(build_record(m245a="Caf\xe9")).decode().encode("latin-1"),
        build_response(build_record()).replace(b"UTF-8", b"no-such-encoding"),
        build_response(build_record(m245a="@x;")).replace(b"@x;", b"&x;"),
        ENTITIES.encode() + build_response(build_record()).partition(b"?>")[2],
        b'<!DOCTYPE x SYSTEM "http://169.254.169.254/">' + build_response().partition(b"?>")[2],
        b"<a>" * 80_000,
    ],
    ids=["empty", "html", "cut off", "latin-1", "encoding", "entity", "bomb", "external", "nested"],
)
def test_what_is_no_xml_is_a_failure(content: bytes) -> None:
    assert read_failure(content) == "Its answer is no XML that can be read."


@pytest.mark.parametrize("content", [b"<html><p>Hello</p></html>", build_record().encode(), b"<explainResponse/>"])
def test_another_xml_is_a_failure(content: bytes) -> None:
    assert read_failure(content) == "Its answer is none of SRU."


def test_another_encoding_may_be_named() -> None:
    content = build_response(build_record(m245a="Café")).decode().replace("UTF-8", "ISO-8859-1").encode("latin-1")
    assert read_response(content, ISBN)["title"] == "Café"
