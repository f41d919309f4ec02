"""The records of a file find the books that are there, by what the librarian chooses."""

from pathlib import Path

import pytest
from django.core.management import CommandError

from books.models import Book
from tests.support.books_admin import create_book
from tests.support.import_command import ISBN, create_emma, import_file, list_failures, write_file

pytestmark = pytest.mark.usefixtures("db")

SAME_ISBN = "0141439513"


@pytest.fixture
def emma() -> Book:
    return create_emma()


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
