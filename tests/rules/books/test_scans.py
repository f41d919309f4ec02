"""What a typed or scanned text means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from books.search.scans import LAYOUTS, Scan, ScanKind, read_scan

ISBN = "9780141439518"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("978-0-14-143951-8", id="hyphens"),
        pytest.param("0141439513", id="10 digits"),
        pytest.param("ISBN 0-14-143951-3 (pbk.)", id="words around it"),
        pytest.param("\ufeff978\u200b0141439518\r\n", id="invisible characters"),
        pytest.param("\x1d9780141439518\t", id="control characters of a scanner"),
        pytest.param("９７８０１４１４３９５１８", id="full-width digits"),
        pytest.param("978014143951812", id="add-on of two digits"),
        pytest.param("9780141439518 51299", id="add-on of five digits"),
        pytest.param("9780141439518+51299", id="add-on behind a plus"),
    ],
)
def test_isbns_are_read_in_any_writing(text: str) -> None:
    scan = read_scan(text)
    assert (scan.kind, scan.isbn13, scan.layout) == (ScanKind.ISBN, ISBN, "")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param("9780141439519", ScanKind.MISREAD, id="wrong check digit"),
        pytest.param("0141439514", ScanKind.MISREAD, id="wrong check digit of ten"),
        pytest.param("978014143951", ScanKind.MISREAD, id="a digit lost"),
        pytest.param("97801414395188", ScanKind.MISREAD, id="a digit twice"),
        pytest.param("978014143951912", ScanKind.MISREAD, id="wrong check digit before an add-on"),
        pytest.param("ISBN 014143951", ScanKind.MISREAD, id="marked as an ISBN"),
        pytest.param("9771234567003", ScanKind.PERIODICAL, id="periodical"),
        pytest.param("977123456700312", ScanKind.PERIODICAL, id="periodical with its issue"),
        pytest.param("9771234567004", ScanKind.MISREAD, id="misread periodical"),
        pytest.param("9790260000438", ScanKind.MUSIC, id="music"),
        pytest.param("", ScanKind.NOTHING, id="empty"),
        pytest.param(" \u200b\x00", ScanKind.NOTHING, id="nothing visible"),
        pytest.param("Emma", ScanKind.WORDS, id="a word"),
        pytest.param("catch-22", ScanKind.WORDS, id="a word and digits"),
        pytest.param("-17", ScanKind.WORDS, id="a negative number"),
        pytest.param("ISBN", ScanKind.WORDS, id="only the mark"),
        pytest.param("((((((((((", ScanKind.WORDS, id="ten signs that are no ISBN"),
    ],
)
def test_other_texts_are_told_apart(text: str, kind: ScanKind) -> None:
    assert read_scan(text).kind is kind


@pytest.mark.parametrize(
    ("text", "number", "is_marked"),
    [("17", 17, False), ("#17", 17, True), ("# 17", 17, True), ("4012345678901", 4012345678901, False)],
)
def test_other_digits_are_ids(text: str, number: int, is_marked: bool) -> None:
    assert read_scan(text) == Scan(ScanKind.ID, text, number=number, is_marked=is_marked)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("isbn", [ISBN, "9780198526636", "080442957X"])
def test_a_scanner_with_another_keyboard_layout_is_recognized(layout: str, isbn: str) -> None:
    scan = read_scan(isbn.translate(str.maketrans("0123456789", LAYOUTS[layout])))
    assert scan.isbn13 == read_scan(isbn).isbn13
    assert scan.layout


def test_a_misread_code_of_another_layout_is_misread() -> None:
    scan = read_scan("çè_à&'&'\"ç(&ç")
    assert (scan.kind, scan.layout) == (ScanKind.MISREAD, "French")


@given(st.text(max_size=80))
def test_every_text_is_read(text: str) -> None:
    assert read_scan(text).text == read_scan(read_scan(text).text).text
