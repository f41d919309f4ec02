"""What a spreadsheet program has hidden, moved or made of a text is named, or its record is doubtful."""

from datetime import date, time
from io import BytesIO
from typing import Any

from openpyxl import Workbook

from books.files.formats.records import Record, Table
from books.files.formats.registry import FORMATS
from books.files.formats.workbooks import iter_notes
from tests.support.book_files import parse_file
from tests.support.program_files import write_workbook

NAMES = ["title", "author", "year", "isbn", "genre"]
QUAY = ["Quay", "Edda Marlow", 2001, "9781861972712", "Essay"]


def build_sheets(sheets: dict[str, list[list[Any]]]) -> Workbook:
    workbook = Workbook()
    workbook.remove(workbook["Sheet"])
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    return workbook


def read_workbook(workbook: Workbook) -> tuple[Table, list[Record]]:
    file = BytesIO()
    workbook.save(file)
    table = FORMATS["xlsx"].read(file, "")
    return table, list(table.records)


def test_sheets_are_read_by_the_names_of_their_columns_or_named() -> None:
    workbook = build_sheets(
        {
            # As rejected records come back.
            "First": [["line", "reason", *NAMES, "shelf"], [2, "x", *QUAY, "A"]],
            "Order": [[*reversed(NAMES)], [*reversed(QUAY)]],
            "Writing": [["TITLE ", "Author", "Year.", "I.S.B.N.", "genre"], QUAY],
            "More": [[None, *NAMES, "notes", "price"], [None, *QUAY, "x"], [None, *QUAY, "y"]],
            "Twice": [[*NAMES, "Title"], QUAY],
            "Empty": [],
            "Intro": [["Our school library"], [None], ["x"]],
            "Old": [NAMES, QUAY],
            "Very old": [NAMES, QUAY, QUAY],
        }
    )
    workbook["Old"].sheet_state, workbook["Very old"].sheet_state = "hidden", "veryHidden"
    table, records = read_workbook(workbook)
    assert [[record.values[name] for name in NAMES] for record in records] == [[*map(str, QUAY)]] * 5
    # Rows are numbered through all sheets that are read.
    assert [record.line for record in records] == [2, 4, 6, 8, 9]
    assert table.left_out == {
        "column “notes” of the sheet “More”": 2,
        "sheet “Twice” with other columns": 2,
        "sheet “Intro” with other columns": 2,
        "hidden sheet “Old”": 2,
        "hidden sheet “Very old”": 3,
    }
    assert [*table.notes] == []


def test_hidden_rows_and_columns_are_read_and_said() -> None:
    note = "Some rows or columns are hidden. They are read as the others."
    for hidden in ("row", "column"):
        workbook = build_sheets({"S": [NAMES, QUAY]})
        sheet = workbook["S"]
        (sheet.row_dimensions[2] if hidden == "row" else sheet.column_dimensions["B"]).hidden = True
        table, records = read_workbook(workbook)
        assert ([*table.notes], len(records)) == ([note], 1)
    # The reader of old workbooks does not tell.
    assert [*iter_notes(BytesIO(), "XLS")] == [
        "Rows and columns that are hidden in an XLS file are read as the others."
    ]


def test_what_a_spreadsheet_made_of_a_text_is_doubtful() -> None:
    made = [date(1963, 11, 22), True, 0.5, time(11, 14), 20_000_000_000, 42, -300]
    sure = [1984, 813, "11:14", "0.5", "true"]
    for place in ("title", "author", "genre"):
        rows = [[cell if name == place else QUAY[NAMES.index(name)] for name in NAMES] for cell in (*made, *sure)]
        records = parse_file("xlsx", write_workbook(NAMES, *rows))
        assert [record.warnings != () for record in records] == [True] * len(made) + [False] * len(sure)
    assert records[0].warnings == ("genre: A spreadsheet has made it “1963-11-22”, which may have been another text.",)


def test_what_a_spreadsheet_made_of_a_text_is_doubtful_in_csv_too() -> None:
    made = [
        "5-Mar",
        "05. Mrz",
        "Mar-05",
        "1.5E+10",
        "2E+05",
        "####",
        "1.2.2024",
        "11/22/63",
        "1963-11-22",
        "11:14:00",
        "WAHR",
    ]
    sure = ["March 5", "May", "5 March", "Mars-05", "1-2", "1E", "11:14", "True", "1/2", "2024-01"]
    rows = "".join(f"{text}\n" for text in (*made, *sure))
    records = parse_file("csv", f"genre\n{rows}".encode())
    assert [record.warnings != () for record in records] == [True] * len(made) + [False] * len(sure)


def test_a_year_that_a_spreadsheet_shows_as_a_day_is_doubtful() -> None:
    made = [date(1905, 6, 27), "27.06.1905", "6/27/1905"]
    sure = [date(1963, 6, 27), "1905", "1905-06", 1905]
    records = parse_file("xlsx", write_workbook(NAMES, *([*QUAY[:2], cell, *QUAY[3:]] for cell in (*made, *sure))))
    warning = "year: A spreadsheet makes such a date of a year like 2005: “1905-06-27”."
    assert records[0].warnings == (warning,)
    assert [record.warnings != () for record in records] == [True] * len(made) + [False] * len(sure)


def test_an_isbn_of_csv_without_its_zeros_is_mended_as_in_a_workbook() -> None:
    data = b"isbn\n306406152\n62073486\n306406153\n0306406152\n"
    records = parse_file("csv", data)
    assert [(record.values["isbn"], bool(record.warnings)) for record in records] == [
        ("0306406152", True),
        ("0062073486", True),
        ("306406153", False),
        ("0306406152", False),
    ]


def test_a_row_with_a_separator_too_many_is_never_taken_for_right() -> None:
    """An empty cell at its end does not show that the others are where they belong."""
    rows = ["Tide,A,G,", "The cat, the rat,A,G,", "The cat, the rat, the bat,A,G", "T,A,G"]
    data = "\n".join(["title,author,genre,notes", *rows]).encode()
    [good, shifted, long, short] = FORMATS["csv"].read(BytesIO(data), "").records
    reason = "row: It has {} cells, and the first line 4."
    assert (good.warnings, good.problem) == ((), "")
    assert (shifted.warnings, shifted.problem, len(shifted.raw)) == ((reason.format(5),), "", 5)
    assert (long.problem, short.problem) == (reason.format(5), reason.format(3))


def test_cells_to_the_right_of_the_named_columns_are_doubtful() -> None:
    """There a separator too many moves them, where each line ends with one."""
    warning = ("row: It has cells to the right of the named columns.",)
    table = FORMATS["csv"].read(BytesIO(b"title;author;\nTide;A;\nThe cat; the rat;A\n"), "")
    assert [record.warnings for record in table.records] == [(), warning]
    records = parse_file("xlsx", write_workbook(["title", None], ["Tide", None], ["Tide", None, "x"]))
    assert [record.warnings for record in records] == [(), warning]
