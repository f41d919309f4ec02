"""Tables of other programs are read as they are written, or refused with what is wrong with them."""

from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given, settings
from hypothesis import strategies as st

from books.files.columns.cells import list_sources, read_cells
from books.files.columns.tables import TABLE_DIALECTS, find_dialect, guess_mapping
from books.files.formats.csv_files import format_rows
from books.files.formats.records import ExportedBook, NumberText
from books.files.formats.registry import FORMATS, find_format
from books.files.matching import add_value_warnings
from books.files.parsing import ParsedRecord
from books.models import Book
from tests.support import program_files
from tests.support.book_files import FIELDS, hostile_books, parse_file, read_records, read_rejected, write_books
from tests.support.hostile_files import SHEET, build_workbook
from tests.support.program_files import write_workbook

TODAY = date(2026, 1, 31)
HEADER = ["title", "author", "year", "isbn", "genre"]


def describe(record: ParsedRecord) -> tuple[Any, ...]:
    """Returns the title, the author, the year, the isbn and the genre, then what is wrong or doubtful about them."""
    texts = [record.problem, *add_value_warnings(record, record.values, TODAY).warnings]
    return (*(record.values.get(name) for name in HEADER), " ".join(filter(None, texts)))


def read_cell(name: str, cell: Any, **others: Any) -> tuple[Any, str]:
    """Returns the value and the doubt of a cell in a column of the field's name, followed by other columns."""
    mapping = guess_mapping([name, *others])
    cells, warnings = read_cells({name: cell, **others}, list_sources(mapping, is_exact=False))
    return cells[name], " ".join(warnings.values())


PROGRAM_FILES: list[tuple[str, str, str, list[tuple[Any, ...]]]] = [
    ("Goodreads", "csv", program_files.GOODREADS, [
        ("The Great Gatsby", "F. Scott Fitzgerald", 2004, "0743273567", "classics", ""),
        ("Beloved", "Toni Morrison", 1987, "9781400033416", "fiction", ""),
    ]),
    ("Zotero", "csv", program_files.ZOTERO, [
        ("The left hand of darkness", "Le Guin, Ursula K.", 1969, "978-0-441-47812-5", "Science fiction", ""),
        ("Essays", "Orwell, Sonia", 1969, "0-14-143951-3", "Essays", ""),
    ]),
    ("LibraryThing", "csv", program_files.LIBRARYTHING, [
        ("The Two Towers", "Tolkien, J. R. R.", 1991, "0261102362", "fantasy", ""),
        (None, None, None, None, None, "ISBN: It is missing."),
    ]),
    ("Calibre", "csv", program_files.CALIBRE, [
        ("The Left Hand of Darkness", "Ursula K. Le Guin", 1969, "9780441478125", "Science Fiction", ""),
        (None, None, None, None, None,
         "pubdate: The date is not known: Calibre writes 1 January 101 then. tags: It is missing."),
    ]),
    ("Libib", "csv", program_files.LIBIB, [("Emma", "Jane Austen", 2003, "9780141439587", "classics", "")]),
    ("Koha", "csv", program_files.KOHA, [
        ("Emma", "Austen, Jane", 2003, "9780141439587", "BK", ""),
        ("Dune", "Herbert, Frank", 1965, "9780441013593", "BK", ""),
    ]),
    ("Koha", "csv", program_files.KOHA_CART, [("Emma", "Austen", 2003, "9780141439587", "Love", "")]),
    ("Alma", "csv", program_files.ALMA, [("Emma", "Austen, Jane", 2016, "9780141439587", "Love stories", "")]),
    ("", "csv", program_files.FRENCH, [("Emma", "Jane Austen", 2001, "9780141439587", "Roman", "")]),
    ("", "csv", program_files.SPANISH, [("Emma", "Jane Austen", 2001, "9780141439587", "Novela", "")]),
    ("", "csv", program_files.PANDAS_CSV, [
        ("Emma", "Jane Austen", 1815, "9780141439587", "Novel", ""),
        (None, None, None, None, None, "isbn: It is missing."),
    ]),
    ("", "jsonl", program_files.PANDAS_JSON, [
        ("Emma", "Jane Austen", 1815, "9780141439587", "Novel", ""),
        ("1984", "George Orwell", 1949, "0141036141", "Novel",
         "isbn: A spreadsheet has made it 141036141, which may be 0141036141."),
    ]),
    ("", "csv", program_files.EXCEL, [("Emma", "Jane Austen", 1815, "978-0-14-143958-7", "Roman", "")]),
]  # fmt: skip


def test_the_tables_of_programs_are_read() -> None:
    for program, name, text, expected in PROGRAM_FILES:
        data = text.encode()
        assert find_dialect(FORMATS[name].read(BytesIO(data), "").columns).name == program
        assert [describe(record) for record in parse_file(name, data)] == expected


def test_a_year_or_a_number_that_a_program_does_not_export_is_chosen_for_all_books(db: None, tmp_path: Path) -> None:
    """StoryGraph has no year, and Open Library no ISBN but the number of an edition. Both have the same work."""
    (tmp_path / "storygraph.csv").write_text(program_files.STORYGRAPH)
    with pytest.raises(CommandError, match=r"names no column year\. .* --default year=TEXT fills a field of all\."):
        call_command("import_books", tmp_path / "storygraph.csv")
    call_command("import_books", tmp_path / "storygraph.csv", default=["year=1815"])
    (tmp_path / "log.csv").write_text(program_files.OPEN_LIBRARY)
    call_command("import_books", tmp_path / "log.csv", use_number=True, take_doubtful=True)
    assert list(Book.objects.values_list("genre", "year", "isbn")) == [
        ("classics", 1815, "9780141439587"),
        ("Courtship", 1814, "no. OL7353617M"),
    ]


def test_a_dialect_is_found_by_its_columns_and_maps_them() -> None:
    for dialect in TABLE_DIALECTS:
        columns = [*dict.fromkeys([*dialect.marks, *(name for names in dialect.columns.values() for name in names)])]
        assert find_dialect([*columns, "Another"]) == dialect
        mapping = guess_mapping(columns)
        assert set(mapping.values()) == {name for names in dialect.columns.values() for name in names}
        assert [place for place in mapping if "_" not in place] == [*filter(dialect.columns.get, dialect.columns)]
        for mark in dialect.marks:
            assert find_dialect([column for column in columns if column != mark]) != dialect, dialect.name


SMALL_ISBN = "isbn: A spreadsheet has made it 743273567, which may be 0743273567."
# A cell of ISBNs, what is read of it, and the doubt.
ISBN_CELLS: list[tuple[Any, str, str]] = [
    ("0743273567", "0743273567", ""),
    ("978-0-7432-7356-5 (pbk.)", "978-0-7432-7356-5 (pbk.)", ""),
    ("9780743273565 0743273567", "9780743273565", ""),
    ("9780743273566, 0743273567", "0743273567", ""),
    ("9780743273566;978-0-7432-7356-5;0743273567", "978-0-7432-7356-5", ""),
    ("ISBN-13: 9780743273565\nISBN-10: 0743273567", "9780743273565", ""),
    ("9780306406157 (set); 9781861972712 (v. 1)", "9781861972712", ""),
    ("9780306406157 (e-book) | 9781861972712 (hbk)", "9781861972712", ""),
    ("no. 12, 9780743273565", "no. 12, 9780743273565", ""),
    ("goodreads:4671,isbn:9780743273565", "9780743273565", ""),
    ("[0743273567]", "0743273567", ""),
    ('="0743273567"', "0743273567", ""),
    ("[]", "", ""),
    ("[LOC 17]", "LOC 17", ""),
    ("12345, 9780743273566", "12345, 9780743273566", ""),
    ("9780743273565.0", "9780743273565", ""),
    ("9.780743273565E+12", "9780743273565", ""),
    (9780743273565, "9780743273565", ""),
    # What a spreadsheet has made of an ISBN.
    ("743273567.0", "0743273567", SMALL_ISBN),
    (743273567, "0743273567", SMALL_ISBN),
    ("9.78E+12", "9.78E+12", "isbn: A spreadsheet has rounded the number."),
    ("9,78074E+12", "9,78074E+12", "isbn: A spreadsheet has rounded the number."),
    (0, "0", ""),
    ("9780743270000", "9780743270000", ""),
    (9780743270000, "9780743270000", "isbn: It is no ISBN. A spreadsheet may have rounded the number."),
]


def test_the_first_valid_isbn_of_a_cell_counts() -> None:
    assert [(cell, *read_cell("isbn", cell)) for cell, _isbn, _doubt in ISBN_CELLS] == ISBN_CELLS
    doubtful = [cell for cell, _isbn, warning in ISBN_CELLS if warning]
    other = ("9780743273565", "")
    assert [read_cell("isbn", cell, isbn13=other[0]) for cell in doubtful] == [other] * len(doubtful)
    warning = "isbn13: The column “isbn” has another one, 0743273567."
    assert read_cell("isbn", 743273567, isbn13="9780141439518") == ("9780141439518", warning)


def test_the_next_column_counts_where_one_has_no_isbn_or_year() -> None:
    columns = {
        ("", "9780743273565", ""): "9780743273565",
        ("[]", "", "0743273567"): "0743273567",
        (None, "12345", "0743273567"): "0743273567",
        ("12345", "9780743273565", "0743273567"): "9780743273565",
        ("0743273567", "9780743273565", ""): "0743273567",
        ("12345", "678", ""): "12345",
        ("", None, " "): "",
    }
    read = {cells: read_cell("isbn", cells[0], isbn13=cells[1], isbn10=cells[2]) for cells in columns}
    assert read == {cells: (isbn, "") for cells, isbn in columns.items()}
    years = list_sources({"year": "a", "year_2": "b"}, is_exact=False)
    assert read_cells({"a": "MCM", "b": "1900"}, years) == ({"year": 1900}, {})


DATES = [
    "1969", " 1969 ", 1969, 1969.0, NumberText("1969"), "1969.0", "1969,0", "1969-03", "1969-03-01", "1969/3/1",
    "1969-03-01T00:00:00", "1969-03-01T00:00:00+00:00", "1969-03-01T00:00:00.000Z", "1969-03-01 00:00:00",
    "01/03/1969", "1.3.1969", "1. 3. 1969", "03/1969", "01/03/1969 00:00", "3/1/1969 12:00:00 AM", "March 1969",
    "1 March 1969", "March 1, 1969", "1. März 1969", "1-Mar-1969", "1969 Mar 1", "1969, Dezember", "Okt. 1969",
    "[1969]", "c1969", "©1969", "cop. 1969"
]  # fmt: skip
DOUBTFUL_YEARS = [
    "[1969?]", "ca. 1969", "1969-1972", "1969/70", "Spring 1969", "1347 [1969]", "2512 (1969)", "昭和44 (1969)",
]  # fmt: skip
OTHER_YEARS: list[tuple[Any, Any]] = [
    ("-44", -44),
    ("0100-12-31T19:00:00-05:00", ""),
    ("MCM", "MCM"),
    ("01/03/69", "01/03/69"),
    ("12345-6", "12345-6"),
    (True, True),
    (None, None),
    (10**40, 10**40),
]


def test_the_year_of_a_date_is_read_and_that_of_another_text_is_doubtful() -> None:
    assert [(cell, read_cell("year", cell)) for cell in DATES] == [(cell, (1969, "")) for cell in DATES]
    warning = "year: The text is “{}”, which may mean 1969."
    assert {cell: read_cell("year", cell) for cell in DOUBTFUL_YEARS} == {
        cell: (1969, warning.format(cell)) for cell in DOUBTFUL_YEARS
    }
    assert [(cell, read_cell("year", cell)) for cell, _value in OTHER_YEARS] == [
        (cell, (value, "")) for cell, value in OTHER_YEARS
    ]


def test_the_first_tag_that_is_no_reading_state_is_the_genre() -> None:
    genres = {"to-read, classics": "classics", "read": "", "": "", "; Gethen": "Gethen", "Law": "Law"}
    for cell, genre in genres.items():
        assert read_cells({"Tags": cell}, list_sources({"genre": "Tags"}, is_exact=False)) == ({"genre": genre}, {})
    for cell, genre in {"to-read, classics": "to-read, classics", "; Gethen": "Gethen", "A | B": "A"}.items():
        assert read_cell("genre", cell) == (genre, "")
    for cell, genre in {
        "Cats | Dogs, C": "Cats",
        "A; B": "A",
        "F -- History -- War, 1861": "F -- History -- War, 1861",
    }.items():
        assert read_cells({"Subjects": cell}, list_sources({"genre": "Subjects"}, is_exact=False)) == (
            {"genre": genre},
            {},
        )


def test_columns_without_a_name_are_left_out_and_named_by_their_letters() -> None:
    header, row = [None, "title", None, "isbn"], [0, "Emma", "x", "9780141439587"]
    csv = ",title, ,isbn\n0,Emma,x,9780141439587\n"
    for name, data in (("csv", csv.encode()), ("xlsx", write_workbook(header, row))):
        table = FORMATS[name].read(BytesIO(data), "")
        assert table.columns == ["title", "isbn"]
        assert list(table.notes) == ["Columns A, C have no name and are left out."]
        for [record] in (list(table.records), read_rejected(name, data)):
            assert record.values == {"title": "Emma", "isbn": "9780141439587"}


def test_a_first_line_may_say_the_separator() -> None:
    for separator, line in ((",", "sep=,\r\n"), ("\t", '"sep=\t"\n'), ("|", "SEP=|\n")):
        data = f'{line}"a, or b;"{separator}isbn\nx{separator}1\n'.encode()
        [record] = read_records("csv", data)
        assert (record.line, record.values) == (3, {"a, or b;": "x", "isbn": "1"})


def test_text_formulas_are_texts() -> None:
    row = ['="0743273567"', '="T ""1"""', '\'="x"', "=1+1"]
    data = format_rows([HEADER[:4], row]).encode()
    [record] = read_records("csv", data)
    assert list(record.values.values()) == ["0743273567", 'T "1"', '="x"', "=1+1"]
    assert read_rejected("csv", data)[0].values == record.values


def test_rows_may_end_with_empty_cells_and_empty_rows_are_no_records() -> None:
    assert [record.problem for record in read_records("csv", b"a,b\n1,2,,\n,\n,,,\n1,2,,3\n")] == [
        "",
        "row: It has 4 cells, and the first line 2.",
    ]


ARRAY = (
    b'\xef\xbb\xbf [\r\n {"title": "a ]} \\"[{", "isbn": [1, {"b": "\\\\"}]},\r\n\r\n{"isbn":\n 2}, {"isbn": 3}]\r\n'
)


def test_an_array_of_objects_is_read() -> None:
    assert find_format(BytesIO(ARRAY)).name == "jsonl"
    expected = [{"title": 'a ]} "[{', "isbn": [1, {"b": "\\"}]}, {"isbn": 2}, {"isbn": 3}]
    records = read_records("jsonl", ARRAY)
    assert [record.line for record in records] == [2, 4, 5]
    assert [record.values for record in records] == expected


def test_what_is_no_object_in_an_array_costs_no_other() -> None:
    data = b'[[1,\n2], {"isbn": "1"}, 3]'
    no_object = "row: It is no JSON object."
    assert [record.problem for record in read_records("jsonl", data)] == [no_object, "", no_object]


def test_json_that_is_nested_deeply_is_a_problem_of_its_record() -> None:
    lines = [b'{"a":' + b"[" * depth + b"]" * depth + b"}\n" for depth in (31, 32)]
    records = read_records("jsonl", b"".join(lines))
    assert [record.problem for record in records] == ["", "row: It is nested deeper than 32."]


def build_sheet(*cells: str) -> bytes:
    """Returns a workbook with one row of these cells."""
    names = "".join(f'<c t="inlineStr"><is><t>{name}</t></is></c>' for name in HEADER)
    rows = f"<row>{names}</row><row>{''.join(cells)}</row>"
    return build_workbook({SHEET: f"<worksheet><sheetData>{rows}</sheetData></worksheet>"})


def test_a_formula_counts_as_its_result_and_an_error_as_an_empty_cell() -> None:
    """An empty cell is also what a formula has that no spreadsheet program has worked out."""
    texts = {
        "<c><f>B2</f><v>1969</v></c>": "1969",
        '<c t="str"><f>"0743273567"</f><v>0743273567</v></c>': "0743273567",
        '<c t="d"><v>1969-03-01T00:00:00</v></c>': "1969-03-01T00:00:00",
        "<c><f>B2+1</f></c>": "",
        '<c t="e"><f>1/0</f><v>#DIV/0!</v></c>': "",
    }
    data = build_sheet(*texts)
    for [record] in (read_records("xlsx", data), read_rejected("xlsx", data)):
        assert list(record.values.values()) == list(texts.values())


@pytest.mark.parametrize("name", ["csv", "xlsx", "jsonl"])
@settings(max_examples=settings().max_examples // 2)
@given(books=st.lists(hostile_books, min_size=1, max_size=3), isbn=st.sampled_from(["9780141439518 0141439513", "[1]",
       "9780141439518.0", '="1"', "[]1", "c1999", " 1"]))  # fmt: skip
def test_our_own_tables_are_the_same_books_again(name: str, books: list[ExportedBook], isbn: str) -> None:
    """Whatever their texts look like."""
    books[0] = type(books[0])(
        **{field: getattr(books[0], field) for field in books[0].__struct_fields__} | {"isbn": isbn}
    )
    records = parse_file(name, write_books(name, books))
    assert [{"id": record.pk, **record.values} for record in records] == [
        {name: getattr(book, name) for name in FIELDS} for book in books
    ]
    assert not any(record.problem for record in records)


def test_reasons_begin_with_the_name_of_the_column_that_counts() -> None:
    rows = ["T;MCM;;678", ";c1999;12345;9780743273565", "T;1999;1;2", f"T;1999;1;2{'x' * 70}"]
    data = "\n".join(["Titel;Jahr;ISBN;EAN", *rows]).encode()
    reasons = [describe(record)[-1] for record in parse_file("csv", data)]
    assert reasons == [
        "Jahr: “MCM” is no year.",
        "Titel: It is missing.",
        "ISBN: This is no valid ISBN.",
        "ISBN: This is no valid ISBN.",
    ]


def test_the_command_says_what_it_recognises_and_leaves_out(
    db: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "books.csv"
    file.write_text(f",{program_files.GOODREADS}".replace("\n", "\n,").removesuffix(","), encoding="utf-8")
    call_command("import_books", file)
    said = capsys.readouterr().err
    assert "Recognised as Goodreads.\nColumn A has no name and is left out.\nLeft out: Book Id, " in said
    assert [*Book.objects.order_by("pk").values_list("isbn", "year")] == [("0743273567", 2004), ("9781400033416", 1987)]


def test_the_command_says_what_no_record_shows_and_adds_no_part_of_a_book(
    db: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "books.ris"
    common = "AU  - Marlow, Edda\nPY  - 2001\nSN  - 9780306406157\nKW  - Essays\nVL  - 2\nER  - \n"
    file.write_text(f"TY  - CHAP\nTI  - On tides\n{common}TY  - BOOK\nTI  - Handbook\n{common}", encoding="utf-8")
    for added in ("1 books added", "1 the same"):
        with pytest.raises(CommandError, match="1 record not imported"):
            call_command("import_books", file, on_match="replace")
        said = capsys.readouterr()
        assert added in said.out
        assert "Left out: VL (1)." in said.err
        assert "1 × " not in said.err
        assert [book.title for book in Book.objects.all()] == ["Handbook"]
    assert '1,"record: It is a part of a book, not a book.",,On tides' in file.with_name("books.failed.csv").read_text(
        encoding="utf-8"
    )


def test_digits_of_other_scripts_are_explained() -> None:
    for year in ("１９９９", "١٩٩٩"):
        [record] = parse_file("csv", f"title,year\nT,{year}\n".encode())
        assert record.problem == f"year: Write “{year}” in the digits 0 to 9."
