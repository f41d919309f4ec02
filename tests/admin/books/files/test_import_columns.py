"""What the pages of an import say about tables of other programs."""

from django.test import Client

from books.files.import_tasks import find_preview
from books.files.uploads import get_mapping, remember_mapping
from books.models import Book, Operation
from tests.support import program_files
from tests.support.book_files import build_exported_book, write_books
from tests.support.imports import check, choose, confirm, count_kinds, page, upload
from tests.support.program_files import write_workbook


def test_the_page_of_the_columns_says_what_it_recognises_and_leaves_out(head: Client) -> None:
    file = upload(head, f",{program_files.LIBRARYTHING}".replace(",", "\t", 1).replace("\n", "\n\t", 1).encode())
    shown = head.get(page(file, "mapping")).content.decode()
    assert "Recognised as LibraryThing." in shown
    assert "Column A has no name and is left out." in shown
    assert "Left out: Book Id, Sort Character, " in shown
    assert '<option value="ISBNs" selected>' in shown
    assert "ISBN, if that has none" in shown


def test_columns_that_were_chosen_are_remembered_also_that_there_is_none(head: Client) -> None:
    first, second = (upload(head, program_files.GOODREADS.encode()) for _ in range(2))
    choose(head, first, column_isbn="ISBN13", column_isbn_2="", column_author="Author l-f")
    form = head.get(page(second, "mapping")).context["form"]
    assert [form[f"column_{place}"].value() for place in ("isbn", "isbn_2", "author", "author_2", "genre")] == [
        "ISBN13",
        "",
        "Author l-f",
        "Author l-f",
        "Bookshelves",
    ]


def test_the_columns_that_a_librarian_chose_are_proposed_to_no_one_else(db: None) -> None:
    """What they did not choose is guessed."""
    columns = ["Title", "Name", "Author"]
    remember_mapping(columns, {"title": "Title"}, 1)
    remember_mapping(columns, {"title": "Name"}, 2)
    mappings = [get_mapping(columns, user) for user in (1, 2, 3)]
    assert mappings == [{"title": title, "author": "Author"} for title in ("Title", "Name", "Title")]


def test_the_name_of_an_uploaded_file_is_a_hint(head: Client) -> None:
    upload(head, b"1.\nTY  - BOOK\nER  - \n", name="books.ris")
    preview = find_preview(Operation.objects.get())
    assert preview
    assert preview.format == "ris"


def test_our_own_exports_keep_their_texts(head: Client) -> None:
    isbns = ["9780141439518 0141439513", "[1]"]
    books = [build_exported_book(id=number, isbn=isbn) for number, isbn in enumerate(isbns, 1)]
    file = upload(head, write_books("csv", books))
    choose(head, file)
    confirm(head, file, action="import_all")
    assert list(Book.objects.order_by("pk").values_list("isbn", flat=True)) == isbns


def test_a_second_column_of_isbns_can_be_chosen_in_every_file(head: Client) -> None:
    file = upload(head, b"title,author,year,isbn,genre,other\nT,A,1999,,G,0743273567\n")
    assert count_kinds(choose(head, file, column_isbn_2="other")) == {"new": 1}


def test_what_a_form_asks_about_is_doubtful_by_the_name_of_its_column(head: Client) -> None:
    rows: list[list[object]] = [["T", "A", 19999, "0743273567", "G"], ["T", "A", "1999?", "1", "G"]]
    _file, shown = check(head, write_workbook(["Titel", "Autor", "Jahr", "ISBN", "Genre"], *rows))
    assert "Jahr: This year is improbable for a book." in shown.content.decode()
    assert "Jahr: The text is “1999?”, which may mean 1999. ISBN: This is no valid ISBN." in shown.content.decode()


def test_a_year_that_a_program_does_not_export_is_asked_for_once(head: Client) -> None:
    """StoryGraph has none. The refusal names the field that fills it in."""
    file = upload(head, program_files.STORYGRAPH.encode())
    page_again = choose(head, file)
    assert page_again.context["form"].non_field_errors() == [
        "The first line names no column year. Choose its column, or fill in “Year of records that have none”."
    ]
    assert count_kinds(choose(head, file, default_year="1815")) == {"new": 1}
    assert head.get(page(file, "mapping")).context["form"]["default_year"].value() == "1815"


def test_the_pages_say_what_no_record_shows(head: Client) -> None:
    file = upload(head, b"@book{x, title = {A}, volume = 2}\n@inbook{y, title = {B}, volume = 2}\n", "in.bib")
    assert "<p>Left out: volume (1).</p>" in head.get(page(file, "mapping")).content.decode()
    shown = choose(head, file, default_genre="Novel", default_year="2000").content.decode()
    assert "<p>Left out: volume (1).</p>" in shown
    assert "record: It is a part of a book, not a book." in shown
