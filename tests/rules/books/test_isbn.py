"""Which texts are ISBNs, and their canonical form of 13 digits (ISO 2108)."""

from books.book.isbn import hyphenate_isbn, is_placeholder, normalize_isbn

EMMA = "9780141439518"
SPELLINGS = {
    "13 digits": EMMA,
    "10 digits": "0141439513",
    "hyphens": "978-0-14-143951-8",
    "spaces": "978 0 14 143951 8",
    "space around": " \t9780141439518\n",
    "Unicode hyphens": "978\u20100\u201014\u2010143951\u20108",
    "en dashes": "978\u20130\u201314\u2013143951\u20138",
    "ISBN and a colon": "ISBN: 978-0-14-143951-8",
    "ISBN-10": "ISBN-10: 0-14-143951-3",
    "ISBN13": "ISBN13 9780141439518",
    "URN": "urn:isbn:9780141439518",
    "hardcover": "ISBN 0-14-143951-3 (hardcover : alk. paper)",
    "byte order mark": "\ufeff9780141439518",
    "directional marks": "\u200e9780141439518\u200f",
    "zero-width space": "978\u200b0141439518",
    "soft hyphens": "978\u00ad0141439518",
    "a mark before the name": "\u200eISBN 9780141439518",
}
OTHER_ISBNS = {
    "080442957X": "9780804429573",
    "ISBN 0-8044-2957-x (pbk.)": "9780804429573",
    # No ISBN-10 means a number that begins with 979.
    "9791090636071": "9791090636071",
    "ISBN 1305081617": "9781305081611",
    "ISBN-10 1032000007": "9781032000008",
}
NO_ISBNS = {
    "a line end before the last digit": "12345678\n9",
    "a name": "isbn-1",
    "ISBN alone": "ISBN",
    "wrong check digit": "9780141439519",
    "wrong check digit of ten": "0141439514",
    "X for another check digit": "014143951X",
    "X within": "0X41439513",
    "X in thirteen": "978080442957X",
    "fourteen digits": "97801414395180",
    "two numbers": "9780141439518 9780141439518",
    "words behind": "9780141439518 Persuasion",
    "words before": "Persuasion 9780141439518",
    "another article number": "5901234123457",
    "a periodical": "9771234567898",
    "sheet music": "9790260000438",
    "Arabic-Indic digits": "٩٧٨٠١٤١٤٣٩٥١٨",
    "superscript": "²780141439518",
    "5,000 digits": "9" * 5_000,
    "5,000 brackets": "(" * 5_000,
    "words far behind": "9780141439518" + " " * 60 + "and words",
    "NUL": "9780141439518\0",
}


def test_every_usual_spelling_has_the_same_canonical_form_of_13_digits() -> None:
    assert {name: normalize_isbn(text) for name, text in SPELLINGS.items()} == dict.fromkeys(SPELLINGS, EMMA)
    assert {text: normalize_isbn(text) for text in OTHER_ISBNS} == OTHER_ISBNS


def test_other_texts_are_no_isbns() -> None:
    assert {name: normalize_isbn(text) for name, text in NO_ISBNS.items()} == dict.fromkeys(NO_ISBNS)


def test_valid_isbns_are_hyphenated() -> None:
    hyphenated = {
        EMMA: "978-0-14-143951-8",
        " 978 0141439518 ": "978-0-14-143951-8",
        "080442957x": "0-8044-2957-X",
        "9799999999990": "9799999999990",
        "9780141439519": "9780141439519",
    }
    assert {text: hyphenate_isbn(text) for text in hyphenated} == hyphenated


def test_a_placeholder_is_no_isbn_of_a_book() -> None:
    placeholders = "0000000000 9999999999 123456789X 0123456789 978-0-00-000000-2 9781234567897 9780123456786"
    assert [text for text in placeholders.split() if not is_placeholder(text)] == []
    assert not any(map(is_placeholder, ("9780306406157", "0141439513", "978-0-00-713657-5", "x")))
