"""What a typed or scanned text means."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from books.search.scans import LAYOUTS, Scan, ScanKind, read_scan

ISBN = "9780141439518"


def test_isbns_are_read_in_any_writing() -> None:
    writings = {
        "words around it": "ISBN 0-14-143951-3 (pbk.)",
        "invisible characters": "\ufeff978\u200b0141439518\r\n",
        "control characters of a scanner": "\x1d9780141439518\t",
        "full-width digits": "９７８０１４１４３９５１８",
        "add-on of two digits": "978014143951812",
        "add-on of five digits": "9780141439518 51299",
        "add-on behind a plus": "9780141439518+51299",
    }
    scans = {name: read_scan(text) for name, text in writings.items()}
    read = {name: (scan.kind, scan.isbn13, scan.layout) for name, scan in scans.items()}
    assert read == dict.fromkeys(writings, (ScanKind.ISBN, ISBN, ""))


KINDS = {
    ScanKind.MISREAD: {
        "wrong check digit": "9780141439519",
        "wrong check digit of ten": "0141439514",
        "a digit lost": "978014143951",
        "a digit twice": "97801414395188",
        "wrong check digit before an add-on": "978014143951912",
        "marked as an ISBN": "ISBN 014143951",
        "misread periodical": "9771234567004",
    },
    ScanKind.PERIODICAL: {"periodical": "9771234567003", "periodical with its issue": "977123456700312"},
    ScanKind.MUSIC: {"music": "9790260000438"},
    ScanKind.NOTHING: {"empty": "", "nothing visible": " \u200b\x00"},
    ScanKind.WORDS: {
        "a word and digits": "catch-22",
        "a negative number": "-17",
        "only the mark": "ISBN",
        "ten signs that are no ISBN": "((((((((((",
    },
}


def test_other_texts_are_told_apart() -> None:
    for kind, texts in KINDS.items():
        assert {name: read_scan(text).kind for name, text in texts.items()} == dict.fromkeys(texts, kind)
    for text, number, is_marked in (("17", 17, False), ("# 17", 17, True), ("4012345678901", 4012345678901, False)):
        assert read_scan(text) == Scan(ScanKind.ID, text, number=number, is_marked=is_marked)


def test_a_scanner_with_another_keyboard_layout_is_recognized() -> None:
    for layout, isbn in product(LAYOUTS, (ISBN, "080442957X")):
        scan = read_scan(isbn.translate(str.maketrans("0123456789", LAYOUTS[layout])))
        assert (scan.isbn13, bool(scan.layout)) == (read_scan(isbn).isbn13, True), layout


def test_a_misread_code_of_another_layout_is_misread() -> None:
    scan = read_scan("çè_à&'&'\"ç(&ç")
    assert (scan.kind, scan.layout) == (ScanKind.MISREAD, "French")


@given(st.text(max_size=80))
def test_every_text_is_read(text: str) -> None:
    assert read_scan(text).text == read_scan(read_scan(text).text).text


def test_a_number_with_leading_zeros_is_no_id() -> None:
    """It is of a label, a card or a product."""
    codes = ("00012", "0000000000012", "00000000000000000012", "071001004950")
    assert {read_scan(code).kind for code in codes} == {ScanKind.WORDS}
    assert [read_scan(code).number for code in ("12", "#12", "#0012", "0")] == [12, 12, 12, 0]
