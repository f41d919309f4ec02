"""What other programs make of texts is mended, and doubtful where it is not certain."""

import html

from books.files.columns.cells import list_sources, read_cells
from books.files.columns.texts import mend_text

SURE = [
    "Café",
    "Łucja Dąbek",
    "ABC À 5 %",
    "CAFÉ…",
    "„MENÜ“",
    "»à«",
    "海の箱",
    "R&D",
    "AT&T; x",
    "a < b > c",
    "Ё",
    "naïve “é”",
]
WRONG_LETTERS = [
    *("Ksi¹¿ka", "Ca³y", "Ksi©gi", "£ucja", "¯ó³w", "¯YCIE", "¶wiat", "¾udia"),
    *("Сheck", "Mьller", "Cafй", "эstanbul", "слоbо", "םישלו"),
]
# What resembles letters of a wrong encoding.
REAL_LETTERS = [
    *("jäääär", "äöüß", "col·lecció", "¿Qué? ¡Hola!", "Mª", "20°C", "N°Cinq", "£5 notes", "¥en", "¢ents"),
    *("x²+y²", "x²y", "H²O", "A±B", "x±y", "Rosa±Blau", "A÷B", "¹H-NMR", "³He", "½Liter", "SPY×FAMILY", "Lego®Ninjago"),
    *("Lego™Ninjago", "Rock•Pop", "Copy©Right", "Van ´t Hoff", "´s-Hertogenbosch", "Ibn ´Arabi"),
    *("ÄÖÜß", "Áéíóú", "Éèàç"),
    *("Пётр I", "iPhone и мы", "iФак", "eКнига", "vЛогер", "Духless", "мРНК", "тРНК", "вУЗы", "гРЭС"),
    *("הַבַּיִת שֶׁל יָעֵל", "בְּרֵאשִׁית", "תַּנָּ״ךְ", "ך"),
]
BOOKS_IN_BRACKETS = [
    *("Tide [electronic resource]", "Tide [large print]", "Tide [Large print edition]", "A [b] c", "[Film] Tide"),
    *(
        "It [Movie Tie-in]",
        "Reise [Rom, 1780]",
        "Reise [Rom]",
        "[Musik] und Sprache",
        "Le [jeu] de l'amour",
        "[Spiele]",
    ),
    *("Hamlet [a revue in two acts]", "Collected works [Map of the world included]", "Letters [and journals]"),
]
TEXTS = ["François et la mer", "The sailor’s boy", "Łódź", "Море и берега", "海の箱", "Grüße – “x”", "İstanbul ışığı"]


def read_cell(field: str, cell: object) -> tuple[object, bool]:
    cells, warnings = read_cells({field: cell}, list_sources({field: field}, is_exact=False))
    return cells[field], bool(warnings)


def test_letters_that_were_read_in_a_wrong_encoding_are_mended_and_doubtful() -> None:
    assert [text for text in SURE if mend_text(text) != (text, "")] == []
    for text in TEXTS:
        for name in ("latin-1", "cp437", "mac-roman"):
            misread = text.encode().decode(name)
            assert mend_text(misread) == (text, f"The text is “{misread}”, which may mean “{text}”.")
    misread = "Море и берега".encode().decode("cp1251")
    assert mend_text(misread)[0] == "Море и берега"
    assert mend_text("FranÃ§ois, François")[0] == "François, François"


def test_letters_of_another_8_bit_encoding_are_doubtful() -> None:
    """Where a text is read in the wrong one, what is chosen among several that all read it."""
    misread = {
        "cp1250": ("cp1252", ["Łucja", "Dąbek", "Książka", "Żółw"]),
        "iso8859_2": ("cp1250", ["Dąbek", "Książka"]),
        "cp1251": ("cp1252", ["Море и берега", "Петров"]),
        "koi8_r": ("cp1255", ["Море и берега", "Иван Петров"]),
        "cp1254": ("cp1251", ["İstanbul ışığı", "Gülşen Ağaoğlu"]),
    }
    for encoding, (chosen, texts) in misread.items():
        for text in texts:
            wrong = text.encode(encoding).decode(chosen)
            assert mend_text(wrong) == (wrong, "It may have letters of another encoding."), (text, wrong)
    for encoding, chosen, text in (("cp1251", "koi8_r", "Берега"), ("gbk", "cp1252", "海与港口的故事")):
        assert mend_text(text.encode(encoding).decode(chosen))[1]
    for text in WRONG_LETTERS:
        assert mend_text(text) == (text, "It may have letters of another encoding.")
    assert [text for text in REAL_LETTERS if mend_text(text) != (text, "")] == []


def test_a_medium_behind_a_title_that_is_no_book_is_doubtful() -> None:
    for medium in ("DVD", "sound recording", "CD-ROM edition", "Elektronische Ressource (CD-ROM)"):
        for end in ("", ". ", " : a film", " = Flut", " /"):
            warning = f"Its kind is “[{medium}]”, which may be no book."
            assert mend_text(f"Tide [{medium}]{end}")[1] == warning
    assert [text for text in BOOKS_IN_BRACKETS if mend_text(text) != (text, "")] == []


def test_entities_and_markup_are_mended_and_doubtful() -> None:
    texts = {"Pride &amp; tides": "Pride & tides", "<i>Emma</i><br/>x": "Emmax", "&#x27;&#39;&ouml;": "''ö"}
    for text, mended in texts.items():
        assert mend_text(text) == (mended, f"The text is “{text}”, which may mean “{mended}”.")
    assert mend_text(html.escape("<b>Emma</b>"))[0] == "Emma"


def test_a_lost_character_is_doubtful() -> None:
    assert mend_text("Caf\ufffd") == ("Caf\ufffd", "It has the character U+FFFD, where another was lost.")
    for sign in ("\x81", "\x07", "\x1b", "\x7f"):
        assert mend_text(f"x{sign}")[1] == f"It has the character U+{ord(sign):04X}, where another was lost."
    assert [mend_text(text)[1] != "" for text in ("M?ller", "Who? What?", "Who?!", "x ?y")] == [
        True,
        False,
        False,
        False,
    ]
    for sign in ("\\u00e9", "\\xe9", "\\n", "%C3%A9", "=C3=A9"):
        assert mend_text(f"A{sign}B")[1] == f"It has “{sign}”, which may stand for another character."
    assert [mend_text(text)[1] for text in ("100% A=B", "C:\\new", "50%AB")] == [""] * 3


def test_marks_of_sorting_are_doubtful() -> None:
    for text in ("\x98Der\x9c Hafen", "<<Der>> Hafen", "¬Der¬ Hafen", "{Der} Hafen", "Der @Hafen"):
        assert mend_text(text) == ("Der Hafen", f"The text is “{text}”, which may mean “Der Hafen”.")
    assert [mend_text(text)[1] for text in ("1 < 2 >>> 0", "1 << 2")] == [""] * 2


def test_marks_of_nothing_are_no_values() -> None:
    marks = [
        "NULL",
        "nan",
        "None",
        "\\N",
        "#N/A",
        "n/a ",
        "-",
        "undefined",
        "#REF!",
        " – ",
        "<NA>",
        "NaT",
        "Unknown",
        "s.n.",
    ]
    for mark in marks:
        for field in ("author", "genre", "isbn", "year"):
            assert read_cell(field, mark) == ("", False)
        assert read_cell("title", mark) == (mark.strip(), True)
    for text in ("ditto", "do.", "Dto.", "idem", "s.o.", "S.O.", "Id.", "…", "!!!", "$", "♥", "*", "+"):
        may_be_nothing = text in ("ditto", "do.", "Dto.", "idem", "s.o.")
        assert [read_cell(field, text)[1] for field in ("title", "author", "genre")] == [False, *[may_be_nothing] * 2]
    for text in ("ohne", "xxx", "0", "Unknown Author", "Kein Titel", "??", '"', "...", "..–"):
        for headings in ({}, {"title": "TI"}):
            sources = list_sources({"author": "author"}, is_exact=False, headings=headings)
            warnings = {"author": "author: It may mean that there is none."}
            assert read_cells({"author": text}, sources) == ({"author": text}, warnings)
    for text in ("N.N.", "Anonymous", "X. Y.", "Emma"):
        assert read_cell("author", text) == (text, False)


def test_punctuation_before_what_was_cut_off_is_no_part_of_a_text() -> None:
    ends = {" /": "", " :": "", " ;": "", " =": "", ",": "", "/": "/", ":": ":", ".": "."}
    for end, left in ends.items():
        assert read_cell("title", f"Quays{end}") == (f"Quays{left}", False)
        assert read_cell("author", f"Marlow, Edda{end}") == (f"Marlow, Edda{left}", False)
    assert read_cell("title", ",") == (",", True)


def test_white_space_is_cleaned_but_not_in_our_own_tables() -> None:
    assert read_cell("isbn", " 9780306406157\n") == ("9780306406157", False)
    assert read_cell("author", "Marlow\n") == ("Marlow", False)
    for field in ("title", "author", "genre"):
        # A cell with several lines may have several genres or names, and a title one that is too long for its column.
        assert read_cell(field, "\u00a0War \n and\u2028 quays\t\ufeff\u200b") == ("War and quays", field != "title")
        for options in ({"is_exact": True}, {"is_exact": False, "headings": {"title": "TI"}}):
            sources = list_sources({field: field}, **options)
            assert read_cells({field: " a  b"}, sources)[0] == {field: " a  b"}
