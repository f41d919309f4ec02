"""MARC 21 of other catalogues, and records that are damaged."""

from collections.abc import Callable
from io import BytesIO

import pymarc
import pytest

from books.book.isbn import normalize_isbn
from books.files.columns.cells import list_sources, read_cells
from books.files.formats.encodings import ENCODINGS
from books.files.formats.marc_xml import format_record
from books.files.formats.records import Record, UnreadableFile
from books.files.formats.registry import FORMATS
from tests.support.book_files import build_exported_book, read_records, read_rejected, reject_records, write_books

ISBD_LEADER = "00000nam a2200000 a 4500"
# What damages a record, and the problems of the pieces in which it comes back.
DAMAGES: list[tuple[Callable[[bytes], bytes], list[str]]] = [
    (lambda record: b"99999" + record[5:], [""]),
    (lambda record: record[:-1], [""]),
    (lambda record: record[: len(record) // 2] + b"\x1d", ["Its directory does not fit field 005."]),
    (lambda record: record.replace("í".encode(), b"\xe9("), ["It is not in UTF-8."]),
    (lambda record: record[:63] + b"00x9" + record[67:], ["Its directory is damaged."]),
    (
        lambda record: record[:200] + b"\x1d" + record[201:],
        ["Its directory does not fit field 020.", "Its directory is damaged."],
    ),
]


def test_a_damaged_record_is_read_or_named_and_costs_no_other() -> None:
    whole = write_books("marc", [build_exported_book(title="Títle")])
    for damage, problems in DAMAGES:
        data = whole + damage(whole) + whole
        expected = ["", *(problem and f"record: {problem}" for problem in problems), ""]
        read, returned = read_records("marc", data), read_rejected("marc", data)
        assert [record.problem for record in read] == [record.problem for record in returned] == expected
        assert {record.values["title"] for record in read if not record.problem} == {"Títle"}


def build_field(tag: str, **subfields: str) -> pymarc.Field:
    return pymarc.Field(tag, pymarc.Indicators(" ", " "), [pymarc.Subfield(*pair) for pair in subfields.items()])


def write_record(*fields: pymarc.Field, leader: str = ISBD_LEADER) -> bytes:
    record = pymarc.Record(leader=leader)
    record.add_field(*fields)
    return bytes(record.as_marc())


def read_one(data: bytes) -> Record:
    [record] = read_records("marc", data)
    return record


def write_marc_8(title: bytes) -> bytes:
    """Returns a record that says it is in MARC-8."""
    field = b"00\x1fa" + title + b"\x1e"
    return b"00000nam  2200000 a 4500" + b"245%04d00000\x1e" % len(field) + field + b"\x1d"


def test_a_record_of_another_catalogue_is_read() -> None:
    data = write_record(
        pymarc.Field("001", data="ocm 123"),
        build_field("020", a="invalid"),
        build_field("020", a="0141439513 (pbk.) :"),
        build_field("100", a="Austen, Jane,", d="1775-1817."),
        build_field("245", a="Pride and prejudice :", b="a novel /", c="by Jane Austen."),
        build_field("260", a="London :", c="[c1813]."),
        build_field("650", a="Sisters", v="Fiction."),
    )
    assert read_one(data).values == {
        "id": "ocm 123",
        "title": "Pride and prejudice: a novel",
        "author": "Austen, Jane",
        "year": "1813",
        "isbn": "0141439513",
        "genre": "Fiction",
    }


@pytest.mark.parametrize("name", ["marc", "ris", "bibtex", "jsonl"])
def test_marks_between_files_that_were_joined_lose_no_record(name: str) -> None:
    record, mark = write_books(name, [build_exported_book()]), b"\xef\xbb\xbf"
    titles = [read.values.get("title") for read in read_records(name, mark.join([mark, record, record]))]
    assert titles == ["Emma", "Emma"]
    assert read_records("csv", mark * 2 + b"title\nEmma\n")[0].values == {"title": "Emma"}


@pytest.mark.parametrize(
    ("title", "expected", "is_doubtful"),
    [
        (b"\xe2Etranger", "Étranger", False),
        ("Étranger".encode(), "Étranger", False),
        (b"a\xbfb", "a b", True),
        (b"a\x1b[b", "a[b", True),
        (b"e\xe2", "e", True),
        (b"\x1b$1\x21\x30", "", True),
    ],
    ids=["MARC-8", "UTF-8 all the same", "unknown character", "unknown escape", "accent of nothing", "cut off"],
)
def test_what_marc_8_does_not_know_is_doubtful(
    title: bytes, expected: str, is_doubtful: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    record = read_one(write_marc_8(title))
    assert (record.values.get("title", ""), bool(record.warnings)) == (expected, is_doubtful)
    assert capsys.readouterr().err == ""


def test_the_first_valid_isbn_of_a_record_counts() -> None:
    """In RIS as in MARC."""
    isbns = {
        ("0141439513 (pbk.) : $5",): "0141439513",
        ("invalid", "0141439513 pbk. : $5"): "0141439513",
        ("978-0-14-143951-4", "978-0-14-143951-8 (hardback ; alk. paper)"): "978-0-14-143951-8",
        ("ISBN 0-14-143951-3 (cloth)", "9780141439587"): "0-14-143951-3",
        ("LOC 17", "LOC 18"): "LOC 17",
    }
    sources = list_sources({"isbn": "isbn"}, is_exact=False)
    for texts, isbn in isbns.items():
        marc = write_record(*[build_field("020", a=text) for text in texts])
        ris = "".join(["TY  - BOOK\n", *[f"SN  - {text}\n" for text in texts], "ER  - \n"]).encode()
        for name, data in (("marc", marc), ("ris", ris)):
            [record] = read_records(name, data)
            assert normalize_isbn(read_cells(record.values, sources)[0]["isbn"]) == normalize_isbn(isbn)


def name_encoding(data: bytes, coding: bytes) -> bytes:
    """Returns the record with another coding scheme in its leader."""
    return data[:9] + coding + data[10:]


# The coding in the leader, the title, the chosen encoding, and what is read; None for nothing.
CODINGS: list[tuple[bytes, bytes, str, str | None]] = [
    (b"a", "Étranger".encode(), "", "Étranger"),
    (b"a", "Étranger".encode(), "utf-8", "Étranger"),
    (b" ", "Étranger".encode(), "", "Étranger"),
    (b" ", "Étranger".encode(), "utf-8", "Étranger"),
    (b" ", "Étranger".encode(), "windows-1252", "Ã‰tranger"),
    (b"a", b"\xe2Etranger", "", None),
    (b"a", b"\xe2Etranger", "marc-8", "Étranger"),
    (b" ", b"\xe2Etranger", "", "Étranger"),
    (b" ", b"\xe2Etranger", "utf-8", None),
    (b"a", b"\xc9tranger", "windows-1252", "Étranger"),
    (b" ", b"\xc9tranger", "windows-1252", "Étranger"),
    (b"a", b"\x81tranger", "windows-1252", None),
]


def test_a_chosen_encoding_counts_more_than_the_leader() -> None:
    for coding, title, choice, expected in CODINGS:
        [record] = read_records("marc", name_encoding(write_marc_8(title), coding), choice)
        problem = "" if expected else f"record: It is not in {ENCODINGS[choice or 'utf-8'].name}."
        assert (record.values.get("title"), record.problem, record.warnings) == (expected, problem, ())


def test_leaders_that_name_another_encoding_are_counted() -> None:
    in_utf_8, in_marc_8 = write_marc_8("Étranger".encode()), write_marc_8(b"\xe2Etranger")
    plain = write_marc_8(b"Stranger")
    right = [in_marc_8, name_encoding(in_utf_8, b"a"), plain, name_encoding(plain, b"a")]
    table = FORMATS["marc"].read(BytesIO(b"".join(right)), "")
    assert (table.description, table.warning, table.notes) == ("MARC 21", "", [])
    wrong = [*[in_utf_8] * 2, name_encoding(in_marc_8, b"a")]
    table = FORMATS["marc"].read(BytesIO(b"".join([*right, *wrong])), "")
    assert table.notes == ["2 records say that they are in MARC-8, and are read as UTF-8, because their bytes are."]
    assert table.warning == (
        "1 record says that it is in UTF-8, and is not. It may be in MARC-8 or Windows-1252 (Latin-1)."
    )
    table = FORMATS["marc"].read(BytesIO(b"".join(wrong)), "marc-8")
    assert (table.description, table.warning, table.notes) == ("MARC 21, MARC-8", "", ())


def test_rejected_records_stay_as_they_are() -> None:
    data = write_marc_8(b"\xe2Etranger") + write_marc_8(b"Emma")
    assert reject_records("marc", data) == ("marc", data)


@pytest.mark.parametrize(("name", "choice"), [("marc", "utf-16"), ("csv", "marc-8"), ("ris", "marc-8")])
def test_an_encoding_that_a_format_does_not_have_is_refused(name: str, choice: str) -> None:
    with pytest.raises(UnreadableFile, match="is not read as"):
        FORMATS[name].read(BytesIO(b"title\n"), choice)


UNIMARC = [
    build_field("010", a="2-07-036002-4"),
    build_field("100", a="20210305d1972    m  y0frey50      ba"),
    build_field("200", a="L'Étranger", f="Albert Camus"),
]


@pytest.mark.parametrize("fields", [UNIMARC, UNIMARC[1:2], UNIMARC[2:]])
def test_unimarc_is_refused_with_what_to_do(fields: list[pymarc.Field]) -> None:
    advice = "Where it comes from, choose MARC 21, CSV or RIS instead."
    emma, other = write_record(build_field("245", a="Emma")), write_record(*fields)
    assert read_records("marc", emma + other)[1].problem == (
        f"record: It is in UNIMARC, which is not MARC 21. {advice}"
    )
    with pytest.raises(UnreadableFile, match=f"The file is in UNIMARC, which is not MARC 21. {advice}"):
        read_records("marc", other + emma)
    record = pymarc.Record(leader=ISBD_LEADER)
    record.add_field(*fields)
    with pytest.raises(UnreadableFile, match=advice):
        read_records("marcxml", format_record(record).encode())


@pytest.mark.parametrize("fields", [[build_field("200", a="Local")], [build_field("100", a="20210305d")]])
def test_what_stands_in_fields_of_unimarc_is_marc_21_beside_a_title(fields: list[pymarc.Field]) -> None:
    assert read_one(write_record(*fields, build_field("245", a="Emma"))).values["title"] == "Emma"
    assert read_one(write_record(build_field("100", a="Austen, Jane"))).problem == ""


def test_line_ends_between_records_are_no_records() -> None:
    records = write_books("marc", [build_exported_book(), build_exported_book(id=18)])
    assert len(read_records("marc", records.replace(b"\x1d", b"\x1d\r\n") + b"\x1a")) == 2


def build_indicated(tag: str, second: str, *subfields: tuple[str, str]) -> pymarc.Field:
    return pymarc.Field(tag, pymarc.Indicators(" ", second), [pymarc.Subfield(*pair) for pair in subfields])


# Field 008 from its sixth character, the fields 264 with their second indicators, and what the year is read from.
DATES: list[tuple[str, list[tuple[str, str]], str | None]] = [
    ("", [("4", "©1998"), ("1", "2004")], "2004"),
    ("", [("2", "2015"), ("1", "2008")], "2008"),
    ("s2004    ", [("4", "©1998")], "2004"),
    ("", [("4", "©1998")], "1998"),
    ("", [("3", "2019")], "2019 (264 _2, _3)"),
    ("", [("1", "[2011?]"), ("3", "2019")], "[2011?]"),
    ("t20122010", [("1", "2010 [that is, 2012]"), ("4", "©2010")], "2012"),
    ("", [("1", "1920 [i.e. 1902]")], "1902"),
    ("q19001950", [("1", "[between 1900 and 1950?]")], "[between 1900 and 1950?]"),
    ("q19001999", [("1", "[19--?]")], "[19--?]"),
    ("q15001599", [], "1500-1599"),
    ("m19992001", [("1", "1999-2001")], "1999-2001"),
    ("r20041998", [("1", "1998 (2004 printing)")], "2004"),
    ("", [("#", "1999")], "1999"),
    *(("", [(" ", text)], "1999") for text in ("c1999.", "[1999],", "©1999", "copyright 1999", "p1999;")),
    ("", [(" ", "[date of publication not identified]"), (" ", "©1999")], "1999"),
    ("", [(" ", "1999, c1998.")], "1999, c1998."),
    ("s1999    ", [(" ", "1999, c1998.")], "1999"),
    ("", [(" ", "[1999?]")], "[1999?]"),
    ("s1999    ", [(" ", "[1999?]")], "[1999?]"),
    ("", [(" ", "1999-2001")], "1999-2001"),
    ("s1998    ", [(" ", "1999-2001")], "1999-2001"),
    ("s1999    ", [(" ", "MCMXCIX")], "1999"),
    ("", [(" ", "MCMXCIX")], "MCMXCIX"),
    ("", [(" ", "[199-?]"), (" ", "ca. 1999")], "ca. 1999"),
    ("s1999    ", [(" ", "-44")], "-44"),
    ("s1962    ", [], "1962"),
    ("s1962    ", [(" ", "1901")], "1901"),
    # In the calendars of Iran and of Thailand.
    ("s1962    ", [(" ", "1341")], "1341 (008: 1962)"),
    ("s1962    ", [(" ", "2505")], "2505 (008: 1962)"),
    ("s19uu    ", [], None),
]


@pytest.mark.parametrize(("coded", "dates", "year"), DATES)
def test_the_year_of_publication_counts_and_no_questionable_one_is_sure(
    coded: str, dates: list[tuple[str, str]], year: str | None
) -> None:
    fields = [pymarc.Field("008", data=f"760403{coded}nyu")] if coded else []
    fields += [build_indicated("264", second, ("c", text)) for second, text in dates]
    record = read_one(write_record(*fields, build_field("245", a="A")))
    assert record.values.get("year") == year
    cells, warnings = read_cells(record.values, list_sources({"year": "year"}, is_exact=False))
    assert not year or bool(warnings or cells["year"] == year) != year.lstrip("-").isdigit()


# The numbers of fields 020 with their qualifiers, and the one that counts.
QUALIFIED_ISBNS: list[tuple[list[tuple[str, str]], str]] = [
    ([("9780306406157", "set"), ("9781861972712", "volume 1")], "9781861972712"),
    ([("9780306406157 (Gesamtwerk)", ""), ("9781861972712 (Bd. 1)", "")], "9781861972712"),
    ([("9780306406157", "electronic bk."), ("9781861972712", "hardback")], "9781861972712"),
    ([("9780306406157", "v. 1"), ("9781861972712", "v. 2"), ("9780141439518", "set")], "9780141439518"),
    ([("9780306406157 (2 vols.)", ""), ("9781861972712", "t. 1")], "9781861972712"),
    ([("9780306406157", "obra completa"), ("9781861972712", "t. 1")], "9781861972712"),
    ([("9780306406157", "audiobook"), ("9781861972712", "hbk")], "9781861972712"),
    ([("9780306406157", "pbk."), ("9781861972712", "hardback")], "9780306406157"),
    ([("9780306406157", "ePub")], "9780306406157"),
]


@pytest.mark.parametrize(("numbers", "isbn"), QUALIFIED_ISBNS)
def test_the_isbn_of_the_edition_counts(numbers: list[tuple[str, str]], isbn: str) -> None:
    fields = [build_indicated("020", " ", ("a", text), *[("q", note)][: bool(note)]) for text, note in numbers]
    assert read_one(write_record(*fields)).values["isbn"] == isbn
    medium = build_field("245", a="A", h="[electronic resource]")
    if any("electronic" in note for _text, note in numbers):
        assert read_one(write_record(*fields, medium)).values["isbn"] == "9780306406157"


# A field, and the title or the author that is read from it with and without ISBD punctuation.
TEXTS: dict[str, pymarc.Field] = {
    "Medicine and duty: a guide": build_field("245", a="Medicine and duty", h="[electronic resource] :", b="a guide /"),
    "Garten = The garden": build_field("245", a="Garten", h="[sound] =", b="The garden."),
    "Letters; Poems": build_field("245", a="Letters", h="[x] ;", b="Poems /"),
    "Quay. 1: stone": build_field("245", a="Quay.", n="1", h="[videorecording] :", b="stone"),
    "Book. 2": build_field("245", a="Book", h="[videorecording].", n="2."),
    "Letters, 1800-1900. Drafts": build_field("245", a="Letters,", f="1800-1900.", k="Drafts /"),
    "White space": build_field("245", a=" White \u00a0 space"),
    "Der Zauberhafen": build_field("245", a="\x98Der\x9c Zauberhafen /"),
    "Die Hafenbraut": build_field("245", a="<<Die>> Hafenbraut."),
    "Das Meer": build_field("245", a="¬Das¬ Meer"),
    "Why...": build_field("245", a="Why..."),
    "Tolkien, J. R. R.": build_field("100", a="Tolkien, J. R. R."),
    "Types, etc.": build_field("245", a="Types, etc."),
    "Mr. and Mrs.": build_field("245", a="Mr. and Mrs."),
    "Gregory XIX, Pope": build_field("100", a="Gregory", b="XIX,", c="Pope,", d="1502-1585."),
    "Stone, Martin, Jr.": build_field("100", a="Stone, Martin,", c="Jr.,", d="1900-"),
    "Quill & Sons, Inc.": build_field("110", a="Quill & Sons, Inc."),
    "Freedonia. Ministry of Tides. Harbour Office": build_field(
        "110", a="Freedonia.", b="Ministry of Tides. Harbour Office."
    ),
    "Tides Day (2nd: 1999: Quay)": build_field("111", a="Tides Day", n="(2nd :", d="1999 :", c="Quay)"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_titles_and_names_are_whole(text: str) -> None:
    assert [*read_one(write_record(TEXTS[text])).values.values()] == [text]


def test_titles_and_names_without_punctuation_are_whole() -> None:
    title = build_field("245", a="\x98Der\x9c Hafen", b="ein Roman", n="1", p="Ebbe")
    data = write_record(title, build_field("100", a="Ott", c="Jr."), leader=f"{ISBD_LEADER[:18]}c{ISBD_LEADER[19:]}")
    assert [*read_one(data).values.values()] == ["Der Hafen: ein Roman. 1. Ebbe", "Ott, Jr."]


def test_marks_of_sorting_in_our_own_titles_stay() -> None:
    for title in ("\x98Der\x9c Hafen", "<<Die>> Braut", "¬Das¬ Meer", "<>"):
        for name in ("marc", "marcxml"):
            [record] = read_records(name, write_books(name, [build_exported_book(title=title, author=title)]))
            assert (record.values["title"], record.values["author"]) == (title, title)


DELETED, COMPONENT = (
    f"record: It is {kind}, not a book." for kind in ("a deleted record", "a part of another publication")
)
POSSIBLE = "record: Its kind is “{}”, which may be no book."
HOST = build_field("773", t="Handbook")
# The first bytes of a leader, other fields, and what is said of the record: Alma's and Aleph's marks, a part of a set,
# a microform, a text in Braille, an electronic one.
KINDS: list[tuple[str, list[pymarc.Field], tuple[str, tuple[str, ...]]]] = [
    *((f"00000{sign}am", [], (DELETED, ())) for sign in "dsx"),
    *((f"00000na{sign}", [], (COMPONENT, ())) for sign in "abd"),
    *((leader, [], ("", ())) for leader in ("00000nam", "00000cam", "00000ntm", "00000n m")),
    ("00000ngm", [], ("", (POSSIBLE.format("leader/06 g"),))),
    ("00000nas", [], ("", (POSSIBLE.format("leader/07 s"),))),
    ("", [pymarc.Field("007", data="hd afu")], ("", (POSSIBLE.format("007/00 h"),))),
    ("", [pymarc.Field("008", data=f"{'':23}f")], ("", (POSSIBLE.format("008/23 f"),))),
    ("", [pymarc.Field("008", data=f"{'':23}o"), pymarc.Field("007", data="cr")], ("", ())),
    ("", [build_field("DEL", a="Y")], (DELETED, ())),
    ("", [build_field("DEL", a="N")], ("", ())),
    ("", [build_field("245", h="[videorecording] /")], ("", (POSSIBLE.format("[videorecording] /"),))),
    ("", [build_field("245", h="[electronic resource]")], ("", ())),
    ("", [build_field("337", a="audio", b="s")], ("", (POSSIBLE.format("audio"),))),
    ("", [build_field("337", a="audio"), build_field("337", a="unmediated", b="n")], ("", ())),
    ("", [build_field("STA", a="DELETED")], (DELETED, ())),
    ("", [HOST], ("", ("record: Field 773 names a publication that it may be a part of.",))),
    (f"{ISBD_LEADER[:19]}c", [HOST], ("", ())),
]


@pytest.mark.parametrize(("leader", "fields", "said"), KINDS)
def test_leader_and_fields_say_what_is_no_book(
    leader: str, fields: list[pymarc.Field], said: tuple[str, tuple[str, ...]]
) -> None:
    record = write_record(build_field("245", a="On tides"), *fields, leader=leader + ISBD_LEADER[len(leader) :])
    for read in (read_one(record), *read_records("marcxml", format_record(pymarc.Record(record)).encode())):
        assert (read.problem, () if read.problem else read.warnings) == said


@pytest.mark.parametrize(
    ("sign", "kind"), [("z", "authority records"), ("x", "holdings"), ("w", "classification records")]
)
def test_records_that_are_not_about_books_are_refused_by_their_kind(sign: str, kind: str) -> None:
    other = write_record(build_field("245", a="Emma"), leader=f"{ISBD_LEADER[:6]}{sign}{ISBD_LEADER[7:]}")
    advice = f"The file has {kind}, not books. Choose bibliographic records instead."
    with pytest.raises(UnreadableFile, match=advice):
        read_records("marc", other)
    [book, refused] = read_records("marc", write_record(build_field("245", a="Emma")) + other)
    assert (book.problem, refused.problem) == ("", f"record: It is one of {kind}, not a book.")


def test_a_subfield_whose_code_is_no_ascii_is_not_guessed() -> None:
    data = write_record(build_field("245", a="Emma", b="a novel")).replace(b"\x1fb", b"\x1f\xe9")
    assert read_one(data).problem == "record: It cannot be read."


SET_ISBN = build_indicated("020", " ", ("a", "9780306406157"), ("q", "(set)"))
ISBN, TITLE, MARLOW = {"isbn": "9780306406157"}, {"title": "Umi"}, {"author": "Marlow"}
VOLUME = build_field("245", a="Works.", n="1,", p="Poems")
LINKED = [
    build_indicated("880", " ", ("6", f"{tag}-01/$1"), ("a", text))
    for tag, text in (("245", "海の箱"), ("100", "鎌田"))
]


def build_name(name: str, **roles: str) -> pymarc.Field:
    return build_field("700", a=name, **roles)


OWN_ROLES = (
    "ed.", "comp.", "joint ed.", "ed. and tr.", "edc", "issuing body", "adp", "oth", "Hg.", "Red.", "Hrsg. und Übers.",
    "éd.", "dir. publ.", "ed. lit.", "a cura di", "redaktor", "redaktör", "yazar", "συγγραφέας", "редактор", "מחבר",
)  # fmt: skip
# Fields, what is read of them, and what is said: warnings, and what is left out.
FIELDS: list[tuple[list[pymarc.Field], dict[str, str], str]] = [
    ([build_field("260", c="1998"), build_field("264", c="2004")], {"year": "2004"}, ""),
    ([SET_ISBN, build_field("245", a="Umi")], {**ISBN, **TITLE}, ""),
    ([SET_ISBN, VOLUME], {**ISBN, "title": "Works. 1, Poems"}, "020$a: It is the ISBN of a set."),
    # The other script counts where the field has nothing.
    ([build_field("245", a="<> /"), *LINKED], {"title": "海の箱", "author": "鎌田"}, "Left out: 880"),
    ([build_field("245", a="Umi"), *LINKED], {**TITLE, "author": "鎌田"}, "Left out: 880"),
    # Added entries count where there is no main one, and in the role of an author; with a title they are other works.
    ([build_name("Austen", t="Emma")], {}, "Left out: 700$t"),
    ([build_name("Marlow")], MARLOW, ""),
    ([build_name("Berg", e="illustrator."), build_name("Marlow", e="editor.")], MARLOW, "Left out: 700 #2"),
    ([build_name("Berg", **{"4": "ill"}), build_name("Marlow", **{"4": "aut"})], MARLOW, "Left out: 700 #2"),
    ([build_name("Marlow"), build_name("Lee", **{"4": "aut"})], MARLOW, "Left out: 700 #2"),
    ([build_name("Marlow", e="Übersetzerin", **{"4": "trl"})], MARLOW,
     "700: The role of this name is “Übersetzerin, trl”."),
    ([build_name("Marlow", e="ill."), build_name("Berg", e="film editor")], MARLOW,
     "700: The role of this name is “ill.”. Left out: 700 #2"),
    ([build_name("Marlow", e="writer of foreword")], MARLOW, "700: The role of this name is “writer of foreword”."),
    # What is no such role counts, whatever its language; so does an editor beside a publisher.
    *(([build_name("Marlow", e=role)], MARLOW, "") for role in OWN_ROLES),
    ([build_name("Marlow", e="ed."), build_field("710", a="Oxford University Press.")], MARLOW, ""),
    ([build_name("Marlow", e="tr."), build_field("710", a="Reclam")], MARLOW, "700: The role of this name is “tr.”."),
    ([build_field("100", a="Marlow", d="1900-", e="translator"), build_name("Berg")], MARLOW, "Left out: 700"),
    # What is not read is counted: fields, repetitions and subfields, but for links and sources.
    ([build_field("300", a="12 p.")], {}, "Left out: 300"),
    ([build_field(tag, a="1") for tag in ("020", "650", "650")], {"isbn": "1", "genre": "1"}, ""),
    ([build_field("245", **{"a": "Umi", "c": "B", "6": "880-01", "j": "C"})] * 2, TITLE,
     "Left out: 245 #2, 245$j"),
    ([build_field("264", a="Oslo", b="Vega", c="2004")], {"year": "2004"}, ""),
    ([build_field("020", z="1", q="pbk.")], {}, "Left out: 020$z"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "values", "said"), FIELDS)
def test_what_is_read_of_fields_and_what_is_not_is_said(
    fields: list[pymarc.Field], values: dict[str, str], said: str
) -> None:
    table = FORMATS["marc"].read(BytesIO(write_record(*fields)), "")
    [record] = table.records
    left_out = [f"Left out: {', '.join(sorted(table.left_out))}"] if table.left_out else []
    assert (record.values, " ".join([*record.warnings, *left_out])) == (values, said)


def test_the_envelopes_of_oai_and_sru_are_no_records() -> None:
    record = format_record(pymarc.Record(write_record(build_field("245", a="Emma"))))
    oai = (
        f"<OAI-PMH><ListRecords><record><header/><metadata>{record}</metadata></record>"
        f'<record><header status="deleted"/><metadata>{record}</metadata></record>'
        '<record><header status="deleted"/></record><resumptionToken>x</resumptionToken></ListRecords></OAI-PMH>'
    )
    sru = f"<s><records><record><recordData>{record}</recordData></record></records><nextRecordPosition/></s>"
    counts = {"deleted records": 2, "further records on the server": 1}
    for text, left_out in ((oai, counts), (sru, {})):
        table = FORMATS["marcxml"].read(BytesIO(text.encode()), "")
        assert [(read.line, read.values["title"], read.problem) for read in table.records] == [(1, "Emma", "")]
        assert table.left_out == left_out
    [lost] = read_records("marcxml", b"<records><record><recordData><dc/></recordData></record></records>")
    assert lost.problem == "record: It has no fields."
