"""Cells of a file that head librarians correct in the page of its check."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from books.files import corrections
from books.files.corrections import MAX_CORRECTION_LENGTH, load_corrections
from books.files.import_operations import begin_check
from books.files.import_tasks import get_rules
from books.history.actors import get_or_create_actor
from books.models import Actor, Book, ImportCorrection, ImportFile, Operation
from books.operations import worker
from tests.support.books import build_isbn
from tests.support.books_admin import create_book
from tests.support.imports import choose, confirm, count_kinds, page, upload
from tests.support.operations import run_operations

HEADER = "Titel;Verfasser;Jahr;ISBN;Gattung;Verfügbar\n"
FIELD = re.compile(r'name="(cell-[0-9]+-[a-z]+)"')
MISREAD = "9780306406158"


def check_rows(browser: Client, *rows: str, **rules: str) -> tuple[ImportFile, Any]:
    file = upload(browser, (HEADER + "\n".join(rows)).encode())
    return file, choose(browser, file, **rules)


def correct(browser: Client, file: ImportFile, action: str = "check", **texts: str) -> Any:
    """Sends the page of the check with these texts, and does the check. Returns the page that follows."""
    file.refresh_from_db()
    fields = {name.replace("_", "-"): text for name, text in texts.items()}
    form = {"check": str(file.check_operation_id), "action": action, **fields}
    browser.post(page(file, "check"), form)
    run_operations()
    return browser.get(page(file, "check"))


def list_fields(response: Any) -> list[str]:
    return FIELD.findall(response.content.decode())


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
    assert "This ISBN was misread" in shown.content.decode()
    shown = correct(head, file, cell_1_isbn="978-0-306-40615-7", cell_2_year="1999", cell_2_isbn="0-306-40615-2")
    # The second one has the ISBN of the first in another writing.
    assert count_kinds(shown) == {"new": 1, "refused": 1}


@pytest.mark.parametrize("year", ["0", "19999", "99999999999"])
def test_an_improbable_year_is_not_called_new(head: Client, year: str) -> None:
    _file, shown = check_rows(head, f"Lalka;Prus;{year};{build_isbn(1)};Roman;")
    assert "new" not in count_kinds(shown)
    assert "Jahr: This year is improbable for a book." in shown.content.decode()


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
    file, _shown = check_rows(head, f"Lalka;Prus;19x8;{build_isbn(1)};Roman;", f"Emma;Jane;1815;{build_isbn(2)};Roman;")
    texts = {"cell_2_title": "X", "cell_9_title": "X", "cell_1_id": "7", "cell_x_year": "1", "cell_1": "1"}
    assert count_kinds(correct(head, file, **texts)) == {"new": 1, "refused": 1}
    assert not ImportCorrection.objects.filter(value__isnull=False).exists()


def test_a_record_that_cannot_be_read_has_no_cells_to_correct(head: Client) -> None:
    _file, shown = check_rows(head, "Lalka;Prus;1890")
    assert count_kinds(shown) == {"refused": 1}
    assert list_fields(shown) == []


def test_corrections_stay_when_columns_and_rules_are_chosen_again(head: Client) -> None:
    file, _shown = check_rows(head, f"Lalka;Prus;19x8;{build_isbn(1)};Roman;")
    correct(head, file, cell_1_year="1998")
    assert count_kinds(choose(head, file, column_genre="", default_genre="Novel")) == {"new": 1}
    confirm(head, file)
    assert Book.objects.values_list("year", "genre").get() == (1998, "Novel")


def test_corrections_that_are_new_are_checked_before_the_import(head: Client) -> None:
    row = f"Lalka;Prus;19x8;{build_isbn(1)};Roman;"
    file, _shown = check_rows(head, row, f"Emma;Jane;1815;{build_isbn(2)};Roman;")
    shown = correct(head, file, "import", cell_1_year="1998")
    assert "Your corrections are checked first. Nothing is imported yet." in shown.content.decode()
    assert (count_kinds(shown), Book.objects.count()) == ({"new": 2}, 0)
    correct(head, file, "import", cell_1_year="1998")
    assert Book.objects.count() == 2


def test_an_import_takes_the_corrections_that_were_there_when_it_began(head: Client, berta: User) -> None:
    """Also if another worker goes on with it."""
    rows = [f"T{number};Prus;19x8;{build_isbn(number)};Roman;" for number in range(4)]
    file, _shown = check_rows(head, *rows)
    correct(head, file, **{f"cell_{number}_year": str(1990 + number) for number in range(1, 5)})
    file.refresh_from_db()
    check = file.check_operation
    assert check is not None
    head.post(page(file, "check"), {"check": str(check.pk), "action": "import"})
    correct(head, file, cell_1_year="1")
    begin_check(file.pk, get_rules(check), get_or_create_actor(Actor.Channel.IMPORT, user_id=berta.pk), timezone.now())
    assert load_corrections(file, check.pk) == {number: {"year": str(1990 + number)} for number in range(1, 5)}
    assert list(Book.objects.order_by("year").values_list("year", flat=True)) == [1991, 1992, 1993, 1994]


def test_a_worker_that_goes_on_reads_the_corrections_again(head: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BATCH_SIZES", dict.fromkeys(worker.BATCH_SIZES, 1))
    rows = [f"T{number};Prus;19x8;{build_isbn(number)};Roman;" for number in range(3)]
    file, _shown = check_rows(head, *rows)
    shown = correct(head, file, cell_1_year="1998", cell_3_year="1998")
    assert count_kinds(shown) == {"new": 2, "refused": 1}


def test_what_was_not_the_latest_check_is_not_corrected(head: Client) -> None:
    file, shown = check_rows(head, f"Lalka;Prus;19x8;{build_isbn(1)};Roman;")
    first = shown.context["operation"].pk
    choose(head, file)
    for check in (str(first), "", "x", "9" * 30):
        form = {"check": check, "action": "check", "cell-1-year": "1998"}
        response = head.post(page(file, "check"), form, follow=True)
        assert "Meanwhile the file was checked again." in response.content.decode()
    assert Operation.objects.filter(kind="import check").count() == 2
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
    file, _shown = check_rows(head, *rows)
    form = {"check": str(ImportFile.objects.get().check_operation_id), "action": "check"}
    long = head.post(page(file, "check"), {**form, "cell-1-year": "1" * (MAX_CORRECTION_LENGTH + 1)}, follow=True)
    assert "A correction is too long." in long.content.decode()
    monkeypatch.setattr(corrections, "MAX_CORRECTED_CELLS", 1)
    many = head.post(page(file, "check"), {**form, "cell-1-year": "1998", "cell-2-year": "1998"}, follow=True)
    assert "No more cells of one file can be corrected here." in many.content.decode()
    assert not ImportCorrection.objects.filter(value__isnull=False).exists()
    assert Operation.objects.filter(kind="import check").count() == 1
    monkeypatch.setattr(corrections, "MAX_ASKED_CELLS", 3)
    monkeypatch.setattr(worker, "BATCH_SIZES", dict.fromkeys(worker.BATCH_SIZES, 1))
    assert len(list_fields(choose(head, file))) == 3


@pytest.mark.parametrize("text", ["a\0b", "\x1b[31m", "<b>", "=1+1"])
def test_any_text_can_be_sent(head: Client, text: str) -> None:
    file, _shown = check_rows(head, f";Prus;1890;{build_isbn(1)};Roman;")
    assert count_kinds(correct(head, file, cell_1_title=text)) == {"new": 1}
    assert "<b>" not in head.get(f"{page(file, 'check')}?kind=new").content.decode()


def test_corrections_are_deleted_with_their_file(head: Client) -> None:
    file, _shown = check_rows(head, f"Lalka;Prus;19x8;{build_isbn(1)};Roman;")
    correct(head, file, cell_1_year="1998")
    head.post(page(file, "delete"))
    assert not ImportCorrection.objects.exists()


def test_the_records_of_one_reason_are_shown_in_pages(head: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("books.admin.files.results.MAX_SHOWN_RECORDS", 2)
    rows = [f"T;Prus;{'19x8' if number % 2 else 1890};{build_isbn(number)};;" for number in range(10)]
    file, shown = check_rows(head, *rows)
    report = shown.context["report"]
    assert [(group.reason, group.total) for group in report.groups] == [
        ("Gattung: This field may not be blank.", 5),
        ("Jahr: … is no year. Gattung: This field may not be blank.", 5),
    ]
    address, positions = report.groups[1].address, []
    while address:
        report = head.get(page(file, "check") + address).context["report"]
        positions.append([row.position for row in report.rows])
        address = report.next_address
    assert positions == [[2, 4], [6, 8], [10]]


@pytest.mark.parametrize("query", ["kind=x", "reason=x", "after=x", "after=-1", f"after={'9' * 30}", "kind=new"])
def test_any_query_shows_a_page(head: Client, query: str) -> None:
    file, _shown = check_rows(head, f"Lalka;Prus;19x8;{build_isbn(1)};Roman;")
    assert head.get(f"{page(file, 'check')}?{query}").status_code == 200


def test_an_import_of_doubtful_records_alone_says_so(head: Client) -> None:
    file, shown = check_rows(head, f"Lalka;Prus;1890;{MISREAD};Roman;")
    assert "Import the 1 record with warnings</button>" in shown.content.decode()
    assert ">Import 0" not in shown.content.decode()
    correct(head, file, "import")
    assert not Book.objects.exists()
    head.post(page(file, "check"), {"check": str(shown.context["operation"].pk), "take_doubtful": "on"})
    run_operations()
    assert Book.objects.get().isbn == MISREAD
