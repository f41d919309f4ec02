"""Which texts are ISBNs, and their canonical form of 13 digits (ISO 2108)."""

import pytest

from books.isbn import hyphenate_isbn, normalize_isbn


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("9780141439518", id="13 digits"),
        pytest.param("0141439513", id="10 digits"),
        pytest.param("978-0-14-143951-8", id="hyphens"),
        pytest.param("978 0 14 143951 8", id="spaces"),
        pytest.param(" \t9780141439518\n", id="space around"),
        pytest.param("978\u20100\u201014\u2010143951\u20108", id="Unicode hyphens"),
        pytest.param("978\u20130\u201314\u2013143951\u20138", id="en dashes"),
        pytest.param("ISBN 9780141439518", id="ISBN"),
        pytest.param("ISBN: 978-0-14-143951-8", id="ISBN and a colon"),
        pytest.param("ISBN-13: 978-0-14-143951-8", id="ISBN-13"),
        pytest.param("ISBN-10: 0-14-143951-3", id="ISBN-10"),
        pytest.param("ISBN13 9780141439518", id="ISBN13"),
        pytest.param("urn:isbn:9780141439518", id="URN"),
        pytest.param("9780141439518 (pbk.)", id="paperback"),
        pytest.param("ISBN 0-14-143951-3 (hardcover : alk. paper)", id="hardcover"),
        pytest.param("\ufeff9780141439518", id="byte order mark"),
        pytest.param("\u200e9780141439518\u200f", id="directional marks"),
        pytest.param("978\u200b0141439518", id="zero-width space"),
        pytest.param("978\u00ad0141439518", id="soft hyphens"),
        pytest.param("\u200eISBN 9780141439518", id="a mark before the name"),
    ],
)
def test_every_usual_spelling_has_the_same_canonical_form(text: str) -> None:
    assert normalize_isbn(text) == "9780141439518"


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        pytest.param("080442957X", "9780804429573", id="X"),
        pytest.param("080442957x", "9780804429573", id="x"),
        pytest.param("ISBN 0-8044-2957-x (pbk.)", "9780804429573", id="x in the middle of a text"),
        pytest.param("9791090636071", "9791090636071", id="979, which no ISBN-10 means"),
        pytest.param("1305081617", "9781305081611", id="beginning with 13"),
        pytest.param("ISBN 1305081617", "9781305081611", id="ISBN, then a number beginning with 13"),
        pytest.param("ISBN-10 1032000007", "9781032000008", id="ISBN-10, then a number beginning with 10"),
    ],
)
def test_an_isbn_has_13_digits(text: str, digits: str) -> None:
    assert normalize_isbn(text) == digits


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("12345678\n9", id="a line end before the last digit"),
        pytest.param("", id="empty"),
        pytest.param(" ", id="blank"),
        pytest.param("isbn-1", id="a name"),
        pytest.param("ISBN", id="ISBN alone"),
        pytest.param("9780141439519", id="wrong check digit"),
        pytest.param("0141439514", id="wrong check digit of ten"),
        pytest.param("014143951X", id="X for another check digit"),
        pytest.param("0X41439513", id="X within"),
        pytest.param("978014143951X", id="X behind thirteen"),
        pytest.param("978080442957X", id="X in thirteen"),
        pytest.param("014143951", id="nine digits"),
        pytest.param("97801414395", id="eleven digits"),
        pytest.param("97801414395180", id="fourteen digits"),
        pytest.param("9780141439518 9780141439518", id="two numbers"),
        pytest.param("9780141439518 Persuasion", id="words behind"),
        pytest.param("Persuasion 9780141439518", id="words before"),
        pytest.param("5901234123457", id="another article number"),
        pytest.param("9771234567898", id="a periodical"),
        pytest.param("9790260000438", id="sheet music"),
        pytest.param("٩٧٨٠١٤١٤٣٩٥١٨", id="Arabic-Indic digits"),
        pytest.param("²780141439518", id="superscript"),
        pytest.param("978014143951Ⅹ", id="Roman numeral"),
        pytest.param("9" * 5_000, id="5,000 digits"),
        pytest.param("(" * 5_000, id="5,000 brackets"),
        pytest.param("9780141439518" + " " * 60 + "and words", id="words far behind"),
        pytest.param("9780141439518\0", id="NUL"),
    ],
)
def test_other_texts_are_no_isbns(text: str) -> None:
    assert normalize_isbn(text) is None


@pytest.mark.parametrize(
    ("text", "hyphenated"),
    [
        ("9780141439518", "978-0-14-143951-8"),
        (" 978 0141439518 ", "978-0-14-143951-8"),
        ("0141439513", "0-14-143951-3"),
        ("080442957x", "0-8044-2957-X"),
        ("9799999999990", "9799999999990"),
        ("9780141439519", "9780141439519"),
        ("isbn-1", "isbn-1"),
    ],
)
def test_valid_isbns_are_hyphenated(text: str, hyphenated: str) -> None:
    assert hyphenate_isbn(text) == hyphenated
