"""The rules by which `import_books` takes the records of a file, finds their books, and what it says of them."""

from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from books.models import Book, Change, Operation
from books.search.quality import warn_isbn
from tests.support.book_files import build_exported_book, write_books
from tests.support.books_admin import create_book
from tests.support.import_command import ISBN, create_emma, import_file, list_failures, write_file

pytestmark = pytest.mark.usefixtures("db")
SAME_ISBN = "0141439513"


@pytest.fixture
def emma() -> Book:
    return create_emma()


def test_defaults_fill_what_a_file_leaves_empty(tmp_path: Path) -> None:
    file = write_file(tmp_path, "T,A,1,1,", header="Titel;Autor;Jahr;ISBN;Art\n".replace(";", ","))
    import_file(file, column=["genre=Art"], default=["genre=Novel"])
    assert list(Book.objects.values_list("title", "author", "genre")) == [("T", "A", "Novel")]
    for options in ({"column": ["shelf=Art"]}, {"column": ["genre=Shelf"]}, {"default": ["shelf=1"]}):
        with pytest.raises(CommandError, match=r"no field shelf|no column Shelf"):
            import_file(file, **options)


def test_another_work_under_the_isbn_of_a_book_is_doubtful(emma: Book, tmp_path: Path) -> None:
    for title, author, is_other in (("Emma 2", "Ann Lee", False), ("Tide", "Austen, J.", False), ("Tide", "Lee", True)):
        file = write_file(tmp_path, f'{title},"{author}",1999,{ISBN},Novel', header="title,author,year,isbn,genre\n")
        with pytest.raises(CommandError) if is_other else nullcontext():
            import_file(file, on_match="replace", take_doubtful=False)
        emma.refresh_from_db()
        assert (emma.title == title) is not is_other
        Book.objects.get().delete()
        emma = create_emma()
    reason = f"isbn: Book {emma.pk - 1} has this ISBN, and another title and author."
    assert list_failures(file) == [f'2,"{reason}",Tide,Lee,1999,{ISBN},Novel']


def test_what_a_spreadsheet_makes_of_our_own_table_changes_nothing(tmp_path: Path) -> None:
    """It writes texts as the numbers that they look like."""
    [pk] = [create_book(title="0042", author="3E5", genre="007", isbn="0306406152", year=1).pk]
    row = f"{pk},42,300000,1,306406152,7,true,2026-01-31 09:30"
    file = write_file(tmp_path, row, header="id,title,author,year,isbn,genre,available,created_at\n")
    import_file(file, match_by="id", on_match="replace", take_doubtful=False)
    import_file(file, on_match="replace", take_doubtful=False)
    book = Book.objects.get()
    assert (book.version, book.title, book.author, book.genre, book.isbn) == (1, "0042", "3E5", "007", "0306406152")


def test_defaults_overwrite_nothing(emma: Book, tmp_path: Path) -> None:
    """A book of the library may get them only in empty fields."""
    file = write_file(tmp_path, f"Emma,,,{ISBN},", "Tide,A,,0306406152,", header="title,author,year,isbn,genre\n")
    default = ["genre=Novel", "year=2024", "author=B", "available=false"]
    for on_match, genre in {"replace": " ", "fill": "Novel"}.items():
        import_file(file, default=default, on_match=on_match)
        emma.refresh_from_db()
        assert (emma.author, emma.year, emma.genre, emma.available) == ("Jane Austen", 1, genre, True)
    tide = Book.objects.get(title="Tide")
    assert (tide.author, tide.year, tide.genre, tide.available) == ("A", 2024, "Novel", False)


def test_a_file_in_windows_1252_is_read_when_it_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "in.csv"
    file.write_bytes("title;author;year;isbn;genre\nCafé;Zoë;1;1;G\n".encode("cp1252"))
    with pytest.raises(CommandError, match="1 record not imported"):
        import_file(file, dry_run=True)
    output = capsys.readouterr().err
    assert "Read as CSV with semicolons, UTF-8." in output
    others = "Windows-1252, Windows-1250, Windows-1251. If so: --encoding windows-1252 or windows-1250 or windows-1251"
    assert f"Line 2 is not UTF-8. The file may be in {others}" in output
    assert "Line 2: title: It has bytes that the encoding of the file does not know." in output
    import_file(file, encoding="windows-1252")
    assert Book.objects.get().title == "Café"


@pytest.mark.unrecorded
@pytest.mark.unannounced
def test_an_export_is_imported(tmp_path: Path) -> None:
    books = [build_exported_book(title="=1+1 é", isbn="[1]"), build_exported_book(available=False, year=-44)]
    file = tmp_path / "in"
    file.write_bytes(write_books("csv", books))
    import_file(file)
    exported = tmp_path / "out.csv"
    call_command("export_books", exported)
    Book._base_manager.all().delete()
    Change.objects.all().delete()
    import_file(exported)
    assert list(Book.objects.order_by("pk").values_list("title", "isbn", "year", "available")) == [
        (book.title, book.isbn, book.year, book.available) for book in books
    ]


def test_a_new_book_is_doubtful_for_what_a_form_asks_about(tmp_path: Path) -> None:
    reasons = {
        (1815, "9780141439519"): f'"isbn: {warn_isbn("9780141439519")}"',
        (1815, "12345"): "isbn: This is no valid ISBN.",
        (1399, ISBN): "year: This year is improbable for a book.",
        (19999, "LOC 17"): "isbn: This is no valid ISBN. year: This year is improbable for a book.",
    }
    rows = [f",Emma {year},Jane Austen,{year},{isbn},Novel," for year, isbn in reasons]
    file = write_file(tmp_path, *rows)
    for options in ({"dry_run": True}, {}):
        with pytest.raises(CommandError, match="4 records not imported"):
            import_file(file, take_doubtful=False, **options)
    assert list_failures(file) == [
        f"{line},{reason},{row}" for line, (reason, row) in enumerate(zip(reasons.values(), rows, strict=True), 2)
    ]
    assert not Book.objects.exists()
    import_file(file)
    assert [*Book.objects.order_by("pk").values_list("year", "isbn")] == [*reasons]


def test_export_books_writes_what_matches_filters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        create_book(isbn=f"i{number}", year=1900 + number)
    call_command("export_books", year_min="1901", title="PRIDE", format="ris")
    assert [line for line in capsys.readouterr().out.split("\r\n") if line.startswith("SN")] == [
        "SN  - i1",
        "SN  - i2",
    ]
    for options in ({"year_min": "x"}, {"format": "xlsx"}):
        with pytest.raises(CommandError, match=r"valid integer|to a file only"):
            call_command("export_books", **options)


def test_what_a_record_leaves_as_it_is_is_not_doubtful(tmp_path: Path) -> None:
    create_book(isbn="LOC 17", title="Emma", year=1000)
    rows = ["Emma,1000,LOC 17,Novel", "Emma,1000,LOC 17,Romance", "Emma,1001,LOC 17,Drama"]
    results = []
    for row in rows:
        file = write_file(tmp_path, row, header="title,year,isbn,genre\n")
        with suppress(CommandError):
            call_command("import_books", file, on_match="replace", on_none="leave")
        results.append(Book.objects.values_list("year", "genre").get())
    assert results == [(1000, "Novel"), (1000, "Romance"), (1000, "Romance")]
    assert list_failures(file) == ["2,year: This year is improbable for a book.,Emma,1001,LOC 17,Drama"]


SCHOLARS = """\
@article{a, title = {Lattices}, author = {Doe, Jane}, journal = {Annals}}
@article{b, title = {Rings}, author = {Doe, Jane}, year = {not yet}, isbn = {0317-8471 (Print), 1050-124X}}
@book{c, title = {Emma}, author = {Austen, Jane}, year = 1815, isbn = {978-0-14-143951-8}}
@book{d, title = {Fields}, author = {Doe, Jane}, year = 1999, isbn = {LOC 17}}
@book{e, title = {Broken, year = 1999}
"""


def test_records_without_an_isbn_are_left_out_if_so_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "in.bib"
    file.write_text(SCHOLARS, encoding="utf-8")
    for options in ({"dry_run": True}, {"leave_without_isbn": True}):
        with pytest.raises(CommandError):
            call_command("import_books", file, default=["genre=Science"], **options)
    printed = capsys.readouterr()
    assert "Line 1: record: It is an article, not a book." in printed.err
    assert "1 books added.\n2 without ISBN." in printed.out
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


def test_a_new_record_of_the_same_work_is_doubtful(emma: Book, tmp_path: Path) -> None:
    other = "9780141439587"
    file = write_file(
        tmp_path,
        f',Emma : a novel,"Austen, Jane",1815,{other},Novel,',
        ",Emma,Cassandra Austen,1815,9780141439600,Novel,",
    )
    with pytest.raises(CommandError, match="1 record not imported"):
        import_file(file, take_doubtful=False)
    reason = f"title: Book {emma.pk} has the same title and author."
    assert list_failures(file)[0].startswith(f"2,{reason},")
    import_file(file, take_doubtful=True, on_match="leave")
    assert Book.objects.filter(isbn=other).exists()


def test_the_work_of_a_book_that_the_file_changes_is_free(emma: Book, tmp_path: Path) -> None:
    rows = [f",Persuasion,Jane Austen,1815,{ISBN},Novel,", ",Emma,Jane Austen,1815,9780141439587,Novel,"]
    import_file(write_file(tmp_path, *rows), take_doubtful=False, on_match="replace")
    assert Book.objects.count() == 2


def test_by_isbn_alone_another_writing_is_another_book(emma: Book, tmp_path: Path) -> None:
    file = write_file(tmp_path, f",Emma,Jane Austen,1815,{SAME_ISBN},Novel,")
    import_file(file, match_by="isbn", on_match="replace")
    assert Book.objects.count() == 2


def test_ids_match_only_if_that_is_asked_for(emma: Book, tmp_path: Path) -> None:
    other = create_book(isbn="taken")
    file = write_file(tmp_path, f"{emma.pk},Emma,Jane Austen,1815,new,Novel,")
    import_file(file, on_match="replace")
    assert sorted(Book.objects.values_list("isbn", flat=True)) == sorted([ISBN, "taken", "new"])
    rows = [f"{emma.pk},E,A,1,newer,G,", f"{other.pk},T,A,1,newer,G,", f"{emma.pk},E,A,1,other,G,", "x,T,A,1,4,G,"]
    with pytest.raises(CommandError, match="3 records not imported"):
        import_file(write_file(tmp_path, *rows), match_by="id", on_match="replace")
    assert [row.partition(",")[2].partition(",")[0] for row in list_failures(file)] == [
        "isbn: The book on line 2 has it.",
        "id: The book on line 2 has it.",
        "id: It is no ID of a book.",
    ]
    with pytest.raises(CommandError, match="1 record not imported"):
        import_file(write_file(tmp_path, f"{emma.pk},E,A,1,taken,G,"), match_by="id", on_match="replace")
    emma.refresh_from_db()
    assert emma.isbn == "newer"


def test_two_writings_in_a_file_are_not_both_added(tmp_path: Path) -> None:
    rows = [f",A,B,1,{ISBN},G,", f",A,B,1,{SAME_ISBN},G,"]
    with pytest.raises(CommandError, match="1 record not imported"):
        import_file(write_file(tmp_path, *rows))
