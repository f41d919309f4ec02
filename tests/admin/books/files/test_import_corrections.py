"""What head librarians correct on the page of a file, before and after its import."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from books.files import corrections
from books.files.corrections import MAX_CORRECTION_LENGTH, load_corrections
from books.history.actors import get_or_create_actor
from books.models import Actor, Book, ImportCorrection, ImportFile, Operation
from books.operations import worker
from tests.support.books import build_isbn
from tests.support.books_admin import change_book, create_book, delete_book
from tests.support.imports import check, check_again, confirm, count_kinds, page, post_confirmation
from tests.support.operations import do_undo, run_operations

HEADER = "Titel;Verfasser;Jahr;ISBN;Gattung;Verfügbar\n"
FIELD = re.compile(r'<input type="text" name="(cell-[0-9]+-[a-z]+)"')
MISREAD = "9780306406158"


def check_rows(browser: Client, *rows: str, **rules: str) -> tuple[ImportFile, Any]:
    return check(browser, (HEADER + "\n".join(rows)).encode(), **rules)


def correct(browser: Client, file: ImportFile, action: str = "check", **texts: str) -> Any:
    """Sends the page of the file with these texts, and does what it begins. Returns the page that follows."""
    fields = {name.replace("_", "-"): text for name, text in texts.items()}
    post_confirmation(browser, file, follow=False, action=action, **fields)
    run_operations()
    return browser.get(page(file, "check"))


def list_fields(response: Any) -> list[str]:
    return FIELD.findall(response.content.decode())


def list_reasons(response: Any) -> list[str]:
    return [row.reason for row in response.context["report"].rows]


def test_cells_that_reasons_are_about_are_corrected_and_imported(head: Client) -> None:
    create_book(isbn="taken")
    rows = [
        f"Lalka;Prus;19x8;{build_isbn(1)};Roman;",
        f";Prus;1890;{build_isbn(2)};Roman;",
        f"Emma; ;;{build_isbn(3)};Roman;vielleicht",
        "Taken;Prus;1890;taken;Roman;",
        f"Fine;Prus;1890;{build_isbn(4)};Roman;",
    ]
    file, shown = check_rows(head, *rows, on_match="refuse")
    assert count_kinds(shown) == {"new": 1, "refused": 4}
    asked = ["cell-1-year", "cell-2-title", "cell-3-author", "cell-3-year", "cell-3-available", "cell-4-isbn"]
    assert list_fields(shown) == asked
    shown = correct(head, file, cell_1_year="1998", cell_2_title="Quo vadis", cell_3_author="Jane", cell_4_isbn="")
    assert count_kinds(shown) == {"new": 3, "refused": 2}
    assert 'value="Jane"' in shown.content.decode()
    assert '<span class="badge">corrected</span>' in shown.content.decode()
    assert "3 cells are corrected here." in shown.content.decode()
    shown = correct(head, file, cell_3_year="1815", cell_3_available="lent", cell_3_author="Jane", cell_4_isbn="free")
    assert count_kinds(shown) == {"new": 4, "doubtful": 1}
    confirm(head, file)
    books = Book.objects.exclude(isbn="taken").order_by("pk").values_list("title", "author", "year", "available")
    assert list(books) == [
        ("Lalka", "Prus", 1998, True),
        ("Quo vadis", "Prus", 1890, True),
        ("Emma", "Jane", 1815, False),
        ("Fine", "Prus", 1890, True),
    ]


def test_a_doubtful_isbn_is_corrected(head: Client) -> None:
    file, shown = check_rows(head, f"Lalka;Prus;1890;{MISREAD};Roman;", "Emma;Jane;19999;12345;Roman;")
    assert count_kinds(shown) == {"doubtful": 2}
    assert list_fields(shown) == ["cell-1-isbn", "cell-2-year", "cell-2-isbn"]
    assert "In this ISBN a digit is wrong" in shown.content.decode()
    # A browser without the script sends the first button when one presses Enter, and this imports nothing.
    assert re.findall(r'<button type="submit"[^>]* name="action" value="([^"]*)"', shown.content.decode())[0] == "save"
    shown = correct(head, file, cell_1_isbn="978-0-306-40615-7", cell_2_year="1999", cell_2_isbn="0-306-40615-2")
    # The second one has the ISBN of the first in another writing.
    assert count_kinds(shown) == {"new": 1, "refused": 1}


def test_a_corrected_cell_can_be_wrong_still_and_be_given_up(head: Client) -> None:
    file, _shown = check_rows(head, f"Lalka;Prus;19x8;{build_isbn(1)};Roman;")
    shown = correct(head, file, cell_1_year="19y8")
    assert count_kinds(shown) == {"refused": 1}
    assert "“19y8” is no year." in shown.content.decode()
    returned = head.get(page(file, "refused")).getvalue().decode()
    assert "“19y8” is no year. Corrected in the page: year: “19y8”." in returned
    assert "Lalka;Prus;19x8;" in returned
    assert "“19x8” is no year." in correct(head, file, cell_1_year="").content.decode()


def test_only_cells_that_the_check_asks_about_are_corrected(head: Client) -> None:
    """A record that cannot be read has none."""
    rows = [f"Lalka;Prus;19x8;{build_isbn(1)};Roman;", f"Emma;Jane;1815;{build_isbn(2)};Roman;", "Nana;Zola;1880"]
    file, shown = check_rows(head, *rows)
    assert list_fields(shown) == ["cell-1-year"]
    texts = {"cell_2_title": "X", "cell_9_title": "X", "cell_1_id": "7", "cell_x_year": "1", "cell_1": "1"}
    assert count_kinds(correct(head, file, **texts)) == {"new": 1, "refused": 2}
    assert not ImportCorrection.objects.filter(value__isnull=False).exists()


def test_what_was_not_imported_is_corrected_checked_and_imported_later(head: Client) -> None:
    isbns = [build_isbn(number) for number in range(3)]
    file, _shown = check_rows(
        head, f"A;Prus;19x8;{isbns[0]};Roman;", f"B;Prus;1890;{isbns[1]};Roman;", f"C;Prus;1890;{isbns[2]};;"
    )
    shown = correct(head, file, "save", cell_1_year="1998")
    assert Operation.objects.filter(kind="import check").count() == 1
    for words in ("1 correction is saved, and not checked yet.", 'value="1998"', ">Import 1 book</button>"):
        assert words in shown.content.decode()
    # The button says one book, so it imports one.
    shown = correct(head, file, "import")
    assert (Book.objects.get().title, count_kinds(shown)) == ("B", {"new": 1, "refused": 2})
    assert shown.context["outcome"] == ["1 book added", "2 records not imported"]
    for words in ("1 correction is saved, and not checked yet.", "Download the 2 records not imported"):
        assert words in shown.content.decode()
    assert list_fields(shown) == ["cell-1-year", "cell-3-genre"]
    shown = correct(head, file)
    assert shown.context["outcome"] == ["1 book to add", "1 record that changes nothing", "1 record not imported"]
    assert count_kinds(shown) == {"left": 1, "new": 1, "refused": 1}
    left = head.get(f"{page(file, 'check')}?kind=left").content.decode()
    assert ("The library has this book, and the rules leave it." in left, "<del>" in left) == (True, False)
    assert count_kinds(check_again(head, file, defaults={"genre": "Novel"})) == {"left": 1, "new": 2}
    shown = correct(head, file, "import")
    assert shown.context["outcome"] == ["2 books added", "1 record that changes nothing"]
    assert "not imported" not in shown.content.decode()
    assert list(Book.objects.order_by("title").values_list("title", "year", "genre")) == [
        ("A", 1998, "Roman"),
        ("B", 1890, "Roman"),
        ("C", 1890, "Novel"),
    ]


def test_the_script_of_the_page_learns_what_a_correction_changed(head: Client) -> None:
    file, shown = check_rows(head, f"Lalka;Prus;1890;{MISREAD};Roman;")

    def send(**form: str) -> Any:
        fields = {name.replace("_", "-"): text for name, text in form.items()}
        return head.post(page(file, "check"), fields, headers={"Accept": "application/json"})

    shown_id = str(shown.context["operation"].pk)
    assert send(shown=shown_id, cell_1_isbn="x").json() == {
        "unchecked": "1 correction is saved, and not checked yet.",
        "writable_count": 0,
        "import_label": "Import 0 books",
    }
    assert send(shown=shown_id, cell_1_accepted="yes").json()["import_label"] == "Import 1 book"
    # The same text again is no correction; a corrected record may get other warnings, which nobody has accepted.
    assert send(shown=shown_id, cell_1_isbn="x").json()["writable_count"] == 1
    assert send(shown=shown_id, cell_1_isbn="y").json()["writable_count"] == 0
    refused = send(shown="7")
    assert (refused.status_code, "Meanwhile the file was checked again" in refused.json()["message"]) == (409, True)


def test_records_with_warnings_are_imported_one_by_one(head: Client) -> None:
    """What is accepted after the import is checked before the next one."""
    isbns = ["9780306406158", "9780306406159", "9780306406150", "9780306406151"]
    file, shown = check_rows(head, *(f"T{isbn};Prus;1890;{isbn};Roman;" for isbn in isbns))
    assert count_kinds(shown) == {"doubtful": 4}
    shown = correct(head, file, "save", cell_1_accepted="yes", cell_2_accepted="yes")
    shown = correct(head, file, "save", cell_2_accepted="")
    assert ">Import 1 book</button>" in shown.content.decode()
    assert "Import those with warnings, too" in shown.content.decode()
    assert count_kinds(correct(head, file, "import")) == {"new": 1, "doubtful": 3}
    shown = correct(head, file, "import", cell_2_accepted="yes")
    assert "The file is not checked yet." in shown.content.decode()
    assert not any(f'value="{action}"' in shown.content.decode() for action in ("import", "import_all"))
    assert count_kinds(correct(head, file)) == {"left": 1, "new": 1, "doubtful": 2}
    shown = correct(head, file, "import")
    assert shown.context["outcome"] == ["1 book added", "1 record that changes nothing", "2 records not imported"]
    assert count_kinds(correct(head, file, cell_3_accepted="yes")) == {"left": 2, "new": 1, "doubtful": 1}
    # Other rules may give other warnings.
    assert count_kinds(check_again(head, file, defaults={"genre": "Novel"})) == {"left": 2, "doubtful": 2}
    assert list(Book.objects.order_by("pk").values_list("isbn", flat=True)) == isbns[:2]


def test_warnings_that_one_import_took_are_warnings_of_the_next_check(head: Client) -> None:
    file, _shown = check_rows(head, f"A;Prus;1890;{MISREAD};Roman;", "B;Prus;19x8;9780306406159;Roman;")
    assert count_kinds(correct(head, file, "import_all")) == {"new": 1, "refused": 1}
    assert count_kinds(correct(head, file, cell_2_year="1998")) == {"left": 1, "doubtful": 1}


def test_what_was_imported_is_found_by_its_isbn(head: Client) -> None:
    """Whatever somebody did with its book since, by the rules of the import."""
    rows = [f"T{number};Prus;1890;{build_isbn(number)};Roman;" for number in range(3)]
    file, _shown = check_rows(head, *rows, on_match="refuse")
    correct(head, file, "import")
    same, changed, deleted = Book.objects.order_by("pk")
    change_book(changed, title="Emma")
    delete_book(deleted)
    assert count_kinds(correct(head, file)) == {"new": 1, "same": 1, "refused": 1}
    assert count_kinds(check_again(head, file, on_match="replace")) == {"new": 1, "same": 1, "changed": 1}
    assert count_kinds(correct(head, file, "import")) == {"new": 1, "same": 1, "changed": 1}
    assert Book.objects.get(pk=same.pk).version == 1


def test_what_was_undone_can_be_imported_again(head: Client, berta: User) -> None:
    """Also where another import of the file followed."""
    file, _shown = check_rows(head, f"A;Prus;1890;{build_isbn(1)};Roman;", f"B;Prus;19x8;{build_isbn(2)};Roman;")
    actor = get_or_create_actor(Actor.Channel.OPERATION, user_id=berta.pk)
    first = confirm(head, file)
    undo = do_undo(first, actor)
    assert "This import is undone." in head.get(page(file, "check")).content.decode()
    assert count_kinds(correct(head, file)) == {"new": 1, "refused": 1}
    do_undo(undo, actor)
    assert count_kinds(correct(head, file, cell_2_year="1998")) == {"new": 1, "left": 1}
    confirm(head, file)
    do_undo(Operation.objects.get(pk=undo.pk + 2), actor)
    assert [book.title for book in Book.objects.all()] == ["B"]
    assert count_kinds(correct(head, file)) == {"new": 1, "left": 1}
    assert count_kinds(correct(head, file, "import")) == {"new": 1, "left": 1}
    assert sorted(book.title for book in Book.objects.all()) == ["A", "B"]


def test_an_import_takes_the_corrections_that_were_there_when_it_began(
    head: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch reads them again, as another worker would."""
    monkeypatch.setattr(worker, "BATCH_SIZES", dict.fromkeys(worker.BATCH_SIZES, 1))
    file, _shown = check_rows(head, *(f"T{number};Prus;19x8;{build_isbn(number)};Roman;" for number in range(2)))
    correct(head, file, cell_1_year="1991", cell_2_year="1992")
    file.refresh_from_db()
    assert file.check_operation is not None
    post_confirmation(head, file, follow=False)
    correct(head, file, cell_1_year="1")
    assert load_corrections(file, file.check_operation.pk) == {1: {"year": "1991"}, 2: {"year": "1992"}}
    assert list(Book.objects.order_by("year").values_list("year", flat=True)) == [1991, 1992]


def test_what_was_not_the_latest_check_is_neither_corrected_nor_imported(head: Client) -> None:
    """The file was checked again in another window, by rules that this one did not show."""
    file, shown = check_rows(head, f"Lalka;Prus;19x8;{build_isbn(1)};Roman;", f"Emma;Jane;1815;{build_isbn(2)};Roman;")
    check_again(head, file, on_none="leave")
    for check_id, action in ((str(shown.context["operation"].pk), "import"), ("x", "check")):
        form = {"shown": check_id, "action": action, "cell-1-year": "1998"}
        response = head.post(page(file, "check"), form, follow=True)
        assert "Meanwhile the file was checked again." in response.content.decode()
    assert list(Operation.objects.values_list("kind", flat=True)) == ["import check"] * 2
    assert not ImportCorrection.objects.filter(value__isnull=False).exists()


def test_a_check_has_its_own_corrections_alone(head: Client) -> None:
    file, shown = check_rows(head, f"Lalka;Prus;19x8;{build_isbn(1)};Roman;")
    former = shown.context["operation"].pk
    check = correct(head, file, cell_1_year="1998").context["operation"].pk
    assert set(ImportCorrection.objects.values_list("operation_id", flat=True)) == {check}
    ImportCorrection.objects.create(file=file, operation_id=former, position=2, member="year", value="1")
    assert load_corrections(file, check) == {1: {"year": "1998"}}


def test_the_number_and_the_length_of_corrections_are_limited(head: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"T;Prus;19x8;{build_isbn(number)};Roman;" for number in range(4)]
    file, shown = check_rows(head, *rows)
    form = {"shown": str(shown.context["operation"].pk), "action": "check"}
    long = head.post(page(file, "check"), {**form, "cell-1-year": "1" * (MAX_CORRECTION_LENGTH + 1)}, follow=True)
    assert "A correction is too long." in long.content.decode()
    assert not ImportCorrection.objects.filter(value__isnull=False).exists()
    assert Operation.objects.filter(kind="import check").count() == 1
    monkeypatch.setattr(corrections, "MAX_ASKED_CELLS", 3)
    monkeypatch.setattr(worker, "BATCH_SIZES", dict.fromkeys(worker.BATCH_SIZES, 1))
    assert len(list_fields(check_again(head, file))) == 3


def test_any_text_can_be_sent(head: Client) -> None:
    texts = ["a\0b", "\x1b[31m", "<b>", "=1+1"]
    file, _shown = check_rows(head, *(f";Prus;1890;{build_isbn(number)};Roman;" for number in range(len(texts))))
    cells = {f"cell_{position}_title": text for position, text in enumerate(texts, 1)}
    assert count_kinds(correct(head, file, **cells)) == {"new": len(texts)}
    assert "<b>" not in head.get(f"{page(file, 'check')}?kind=new").content.decode()


def test_the_records_of_one_reason_are_shown_in_pages(head: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("books.admin.files.results.MAX_SHOWN_RECORDS", 2)
    rows = [f"T;Prus;{'19x8' if number % 2 else 1890};{build_isbn(number)};;" for number in range(6)]
    file, shown = check_rows(head, *rows)
    report = shown.context["report"]
    assert [(group.text, group.total) for group in report.groups] == [
        ("Gattung: It is missing.", 3),
        ("Jahr: … is no year. Gattung: It is missing.", 3),
    ]
    address, positions = report.groups[1].address, []
    while address:
        report = head.get(page(file, "check") + address).context["report"]
        positions.append([row.position for row in report.rows])
        address = report.next_address
    assert positions == [[2, 4], [6]]


def test_any_query_shows_a_page(head: Client) -> None:
    file, _shown = check_rows(head, f"Lalka;Prus;19x8;{build_isbn(1)};Roman;")
    for query in ("kind=x", "reason=x", "after=x", "after=-1", f"after={'9' * 30}", "kind=new"):
        assert head.get(f"{page(file, 'check')}?{query}").status_code == 200, query
