"""The verdicts of the records of a file: by the books that are there, and by the rules of a librarian."""

from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.management import CommandError, call_command

from books.files.columns.tables import guess_mapping
from books.files.formats.records import Record
from books.files.formats.registry import FORMATS
from books.files.import_tasks import get_day
from books.files.parsing import ImportRules, parse_records
from books.files.reasons import FIELD_NAMES
from books.models import Book, Change, Operation
from books.search.quality import warn_isbn
from tests.support.book_files import build_exported_book, write_books
from tests.support.books import build_book

ISBN, SAME_ISBN = "978-0-14-143951-8", "0141439513"
HEADER = "id,title,author,year,isbn,genre,available\n"


def write_file(tmp_path: Path, *rows: str, header: str = HEADER) -> Path:
    file = tmp_path / "in.csv"
    file.write_text(header + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return file


def import_file(file: Path, **options: Any) -> None:
    """What is doubtful about the values is looked at where a test says so."""
    call_command("import_books", file, **{"take_doubtful": True, **options})


def list_failures(file: Path) -> list[str]:
    return [line.rstrip() for line in file.with_name("in.failed.csv").read_text(encoding="utf-8").splitlines()[1:]]


def read_book(pk: int, *fields: str) -> tuple[Any, ...]:
    values: tuple[Any, ...] = Book.objects.values_list(*(fields or ("title", "year", "genre", "available"))).get(pk=pk)
    return values


@pytest.fixture
def emma(api: httpx.Client) -> int:
    pk: int = api.post("/api/books", json=build_book(title="Emma", isbn=ISBN, genre=" ", year=1)).json()["id"]
    return pk


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("replace", ("Emma!", 1815, "Novel", False)),
        ("fill", ("Emma", 1, "Novel", True)),
        ("leave", ("Emma", 1, " ", True)),
    ],
)
def test_a_match_is_replaced_filled_or_left(emma: int, tmp_path: Path, rule: str, expected: tuple[Any, ...]) -> None:
    file = write_file(tmp_path, f",Emma!,Jane Austen,1815,{ISBN},Novel,false")
    import_file(file, on_match=rule)
    assert read_book(emma) == expected
    assert Change.objects.filter(book_id=emma).count() == (1 if rule == "leave" else 2)


def test_equal_values_are_no_change(emma: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_file(tmp_path, f"Emma,{ISBN}", header="title,isbn\n")
    import_file(file, on_match="replace", on_none="leave")
    assert "0 books added.\n1 the same." in capsys.readouterr().out
    assert read_book(emma, "version") == (1,)


def test_only_the_fields_of_a_file_are_replaced(emma: int, tmp_path: Path) -> None:
    file = write_file(tmp_path, f"{ISBN},Romance", "unknown,Romance", header="isbn,genre\n")
    import_file(file, on_match="replace", on_none="leave")
    assert read_book(emma) == ("Emma", 1, "Romance", True)
    assert Book.objects.count() == 1


def test_a_new_book_needs_all_fields(emma: int, tmp_path: Path) -> None:
    file = write_file(tmp_path, f"{ISBN},Romance", header="isbn,genre\n")
    with pytest.raises(CommandError, match=r"names no column title, author, year\."):
        import_file(file)


def test_the_same_isbn_in_another_writing_is_doubtful(emma: int, tmp_path: Path) -> None:
    file = write_file(tmp_path, f",Emma,Jane Austen,1815,{SAME_ISBN},Novel,")
    warning = f"isbn: Book {emma} has it in another writing."
    for on_match in ("refuse", "replace"):
        with pytest.raises(CommandError, match="1 record not imported"):
            import_file(file, on_match=on_match, take_doubtful=False)
        assert list_failures(file) == [f"2,{warning},,Emma,Jane Austen,1815,{SAME_ISBN},Novel,"]
    import_file(file, on_match="replace", take_doubtful=True)
    assert read_book(emma, "isbn", "year") == (SAME_ISBN, 1815)


def test_a_new_record_of_the_same_work_is_doubtful(emma: int, tmp_path: Path) -> None:
    other = "9780141439587"
    file = write_file(
        tmp_path,
        f',Emma : a novel,"Austen, Jane",1815,{other},Novel,',
        ",Emma,Cassandra Austen,1815,9780141439600,Novel,",
    )
    with pytest.raises(CommandError, match="1 record not imported"):
        import_file(file, take_doubtful=False)
    reason = f"title: Book {emma} has the same title and author."
    assert list_failures(file)[0].startswith(f"2,{reason},")
    import_file(file, take_doubtful=True, on_match="leave")
    assert Book.objects.filter(isbn=other).exists()


def test_records_of_the_same_work_in_one_file_are_new_ones(
    db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in several batches: the check sees none of them in the library."""
    monkeypatch.setattr("books.operations.worker.FIRST_BATCH_SIZE", 1)
    rows = [f",Emma,Jane Austen,1815,{isbn},Novel," for isbn in ("9780141439587", "9780141439518", "9780141439600")]
    import_file(write_file(tmp_path, *rows), take_doubtful=False)
    assert Book.objects.count() == 3


def test_the_work_of_a_book_that_the_file_changes_is_free(emma: int, tmp_path: Path) -> None:
    rows = [f",Persuasion,Jane Austen,1815,{ISBN},Novel,", ",Emma,Jane Austen,1815,9780141439587,Novel,"]
    import_file(write_file(tmp_path, *rows), take_doubtful=False, on_match="replace")
    assert Book.objects.count() == 2


def test_by_isbn_alone_another_writing_is_another_book(emma: int, tmp_path: Path) -> None:
    file = write_file(tmp_path, f",Emma,Jane Austen,1815,{SAME_ISBN},Novel,")
    import_file(file, match_by="isbn", on_match="replace")
    assert Book.objects.count() == 2


def test_ids_match_only_if_that_is_asked_for(api: httpx.Client, emma: int, tmp_path: Path) -> None:
    other_id = api.post("/api/books", json=build_book(isbn="taken")).json()["id"]
    file = write_file(tmp_path, f"{emma},Emma,Jane Austen,1815,new,Novel,")
    import_file(file, on_match="replace")
    assert (Book.objects.count(), read_book(emma, "isbn")) == (3, (ISBN,))
    rows = [f"{emma},E,A,1,newer,G,", f"{other_id},T,A,1,newer,G,", f"{emma},E,A,1,other,G,", "x,T,A,1,4,G,"]
    with pytest.raises(CommandError, match="3 records not imported"):
        import_file(write_file(tmp_path, *rows), match_by="id", on_match="replace")
    assert [row.partition(",")[2].partition(",")[0] for row in list_failures(file)] == [
        "isbn: The book on line 2 has it.",
        "id: The book on line 2 has it.",
        "id: It is no number of a book.",
    ]
    with pytest.raises(CommandError, match="1 record not imported"):
        import_file(write_file(tmp_path, f"{emma},E,A,1,taken,G,"), match_by="id", on_match="replace")
    assert read_book(emma, "isbn") == ("newer",)


def test_an_id_beyond_64_bits_is_no_id(api: httpx.Client, tmp_path: Path) -> None:
    numbers = [2**63 - 1, 1 - 2**63, 2**63, -(2**63), 10**30]
    file = write_file(tmp_path, *(f"{number},T,A,1,i{number},G," for number in numbers))
    with pytest.raises(CommandError, match="3 records not imported"):
        import_file(file, match_by="id")
    assert [row.partition(",")[0] for row in list_failures(file)] == ["4", "5", "6"]
    assert all("id: It is no number of a book." in row for row in list_failures(file))
    assert Book.objects.count() == 2


def test_two_writings_in_a_file_are_not_both_added(api: httpx.Client, tmp_path: Path) -> None:
    rows = [f",A,B,1,{ISBN},G,", f",A,B,1,{SAME_ISBN},G,"]
    with pytest.raises(CommandError, match="1 record not imported"):
        import_file(write_file(tmp_path, *rows))
    assert "The book on line 2 has it in another writing." in list_failures(tmp_path / "in.csv")[0]


def test_defaults_fill_what_a_file_leaves_empty(api: httpx.Client, tmp_path: Path) -> None:
    file = write_file(tmp_path, "T,A,1,1,", header="Titel;Autor;Jahr;ISBN;Art\n".replace(";", ","))
    import_file(file, column=["genre=Art"], default=["genre=Novel"])
    assert list(Book.objects.values_list("title", "author", "genre")) == [("T", "A", "Novel")]
    for options in ({"column": ["shelf=Art"]}, {"column": ["genre=Shelf"]}, {"default": ["shelf=1"]}):
        with pytest.raises(CommandError, match=r"no field shelf|no column Shelf"):
            import_file(file, **options)


def test_a_file_in_windows_1252_is_read_when_it_is_named(
    api: httpx.Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "in.csv"
    file.write_bytes("title;author;year;isbn;genre\nCafé;Zoë;1;1;G\n".encode("cp1252"))
    with pytest.raises(CommandError, match="1 record not imported"):
        import_file(file, dry_run=True)
    output = capsys.readouterr().err
    assert "Read as CSV with semicolons, UTF-8." in output
    assert "Line 2 is not UTF-8. The file may be in Windows-1252 (Latin-1). If so: --encoding windows-1252" in output
    assert "Line 2: title: It has bytes that the encoding of the file does not know." in output
    import_file(file, encoding="windows-1252")
    assert Book.objects.get().title == "Café"


@pytest.mark.unrecorded
@pytest.mark.unannounced
@pytest.mark.parametrize("name", FORMATS)
def test_an_export_of_any_format_is_imported(api: httpx.Client, tmp_path: Path, name: str) -> None:
    books = [build_exported_book(title="=1+1 é", isbn="x"), build_exported_book(available=False, year=-44)]
    file = tmp_path / "in"
    file.write_bytes(write_books(name, books))
    import_file(file)
    exported = tmp_path / f"out{FORMATS[name].extension}"
    call_command("export_books", exported)
    Book._base_manager.all().delete()
    Change.objects.all().delete()
    import_file(exported)
    assert list(Book.objects.order_by("pk").values_list("title", "isbn", "year", "available")) == [
        (book.title, book.isbn, book.year, book.available) for book in books
    ]


def test_export_books_writes_what_matches_filters(
    api: httpx.Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        api.post("/api/books", json=build_book(isbn=f"i{number}", year=1900 + number))
    call_command("export_books", year_min="1901", title="PRIDE", format="ris")
    assert [line for line in capsys.readouterr().out.split("\r\n") if line.startswith("SN")] == [
        "SN  - i1",
        "SN  - i2",
    ]
    for options in ({"year_min": "x"}, {"format": "xlsx"}):
        with pytest.raises(CommandError, match=r"valid integer|to a file only"):
            call_command("export_books", **options)


def test_columns_are_guessed_by_their_names() -> None:
    columns = ["Nr.", "TITEL", "Verfasser", "Erscheinungsjahr", "Date", "ISBN-13", "isbn", "Sachgebiet"]
    assert guess_mapping(columns) == {
        "title": "TITEL",
        "author": "Verfasser",
        "year": "Erscheinungsjahr",
        "isbn": "isbn",
        "isbn_2": "ISBN-13",
        "genre": "Sachgebiet",
    }


def test_all_problems_of_a_record_are_named_together() -> None:
    mapping = {name: name for name in ("title", "year", "isbn")}
    raw = Record(7, {"title": " ", "year": "MCM", "isbn": []}, None)
    [record] = parse_records([raw], ImportRules(mapping))
    assert record.problem == ("title: It is missing. year: “MCM” is no year. isbn: It is no text.")


@pytest.mark.usefixtures("db")
@pytest.mark.parametrize(
    ("isbn", "year", "reason"),
    [
        ("9780141439519", 1815, f'"isbn: {warn_isbn("9780141439519")}"'),
        ("12345", 1815, "isbn: This is no valid ISBN."),
        (ISBN, 1399, "year: This year is improbable for a book."),
        ("LOC 17", 19999, "isbn: This is no valid ISBN. year: This year is improbable for a book."),
    ],
)
def test_a_new_book_is_doubtful_for_what_a_form_asks_about(tmp_path: Path, isbn: str, year: int, reason: str) -> None:
    file = write_file(tmp_path, f",Emma,Jane Austen,{year},{isbn},Novel,")
    with pytest.raises(CommandError, match="1 record not imported"):
        call_command("import_books", file, dry_run=True)
    with pytest.raises(CommandError, match="1 record not imported"):
        call_command("import_books", file)
    assert list_failures(file) == [f"2,{reason},,Emma,Jane Austen,{year},{isbn},Novel,"]
    assert not Book.objects.exists()
    call_command("import_books", file, take_doubtful=True)
    assert Book.objects.get().isbn == isbn


@pytest.mark.usefixtures("db")
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_what_is_doubtful(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "in"
    file.write_bytes(write_books(name, [build_exported_book(isbn="12345"), build_exported_book(id=18, year=19999)]))
    with pytest.raises(CommandError, match="2 records not imported"):
        call_command("import_books", file, dry_run=True)
    reasons = [line.split(": ") for line in capsys.readouterr().err.splitlines() if line.startswith(("Line", "Record"))]
    place = "Record" if name.startswith("marc") else "Line"
    isbn, year = FIELD_NAMES.get(name, {}).get("isbn", "isbn"), FIELD_NAMES.get(name, {}).get("year", "year")
    assert [(where.split()[0], *others) for where, *others in reasons] == [
        (place, isbn, "This is no valid ISBN."),
        (place, year, "This year is improbable for a book."),
    ]


def test_what_a_record_leaves_as_it_is_is_not_doubtful(api: httpx.Client, tmp_path: Path) -> None:
    api.post("/api/books", json=build_book(isbn="LOC 17", title="Emma", year=1000))
    rows = ["Emma,1000,LOC 17,Novel", "Emma,1000,LOC 17,Romance", "Emma,1001,LOC 17,Drama"]
    results = []
    for row in rows:
        file = write_file(tmp_path, row, header="title,year,isbn,genre\n")
        with suppress(CommandError):
            call_command("import_books", file, on_match="replace", on_none="leave")
        results.append(Book.objects.values_list("year", "genre").get())
    assert results == [(1000, "Novel"), (1000, "Romance"), (1000, "Romance")]
    assert list_failures(file) == ["2,year: This year is improbable for a book.,Emma,1001,LOC 17,Drama"]


def test_next_year_is_that_of_the_day_on_which_an_operation_was_asked_for() -> None:
    operation = Operation(created_at=datetime(2026, 12, 31, 23, 59, tzinfo=UTC))
    assert get_day(operation) == date(2026, 12, 31)


SCHOLARS = """\
@article{a, title = {Lattices}, author = {Doe, Jane}, journal = {Annals}}
@article{b, title = {Rings}, author = {Doe, Jane}, year = {not yet}, isbn = {0317-8471 (Print), 1050-124X}}
@book{c, title = {Emma}, author = {Austen, Jane}, year = 1815, isbn = {978-0-14-143951-8}}
@book{d, title = {Fields}, author = {Doe, Jane}, year = 1999, isbn = {LOC 17}}
@book{e, title = {Broken, year = 1999}
"""


def import_scholars(tmp_path: Path, **options: Any) -> None:
    file = tmp_path / "in.bib"
    file.write_text(SCHOLARS, encoding="utf-8")
    with pytest.raises(CommandError):
        call_command("import_books", file, default=["genre=Science"], **options)


def test_records_without_an_isbn_are_left_out_if_so_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import_scholars(tmp_path, dry_run=True)
    assert "Line 1: year: It is missing. isbn: It is missing." in capsys.readouterr().err
    import_scholars(tmp_path, leave_without_isbn=True)
    assert "1 books added.\n2 without ISBN." in capsys.readouterr().out
    assert [(book.title, book.genre) for book in Book.objects.all()] == [("Emma", "Science")]
    came_back = tmp_path.joinpath("in.failed.csv").read_text(encoding="utf-8")
    assert [title in came_back for title in ("Lattices", "Rings", "Emma", "Fields")] == [False, False, False, True]
    assert came_back.splitlines()[2].startswith("5,")
    operation = Operation.objects.get(kind="import")
    assert (operation.unchanged, operation.refused, (operation.parameters or {})["rules"]["leave_without_isbn"]) == (
        2,
        2,
        True,
    )


@pytest.mark.parametrize(
    ("isbn", "is_left_out"),
    [
        ("", True),
        (" ", True),
        ("0317-8471", True),
        ("ISSN: 0317-8471", True),
        ("03178471; 1050-124X", True),
        ("0317-8472", False),
        ("0317-8471 LOC 17", False),
        ("LOC 17", False),
        ("()", False),
        ("0317-8471 " * 21, False),
        (ISBN, False),
    ],
)
def test_an_issn_is_no_isbn(isbn: str, is_left_out: bool) -> None:
    rules = ImportRules({"isbn": "isbn"}, leave_without_isbn=True)
    [record] = parse_records([Record(1, {"isbn": isbn}, None)], rules)
    assert record.is_left_out == is_left_out
    [record] = parse_records([Record(1, {"isbn": isbn}, None)], ImportRules({"isbn": "isbn"}))
    assert not record.is_left_out
