"""The reasons that an import or an operation gives are in the language of who began it."""

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import translation
from django.utils.translation import get_language

from books.models import ImportFinding, Operation
from tests.support.admin_pages import read_inputs, read_text
from tests.support.book_files import build_exported_book, write_books
from tests.support.imports import check, choose, confirm, page, upload
from tests.support.operations import run_operations

HEADER = "title;author;year;isbn;genre\n"
ROWS = [
    "Lalka;Bolesław Prus;1890;1;Novel",
    "Emma;;1815;2;Novel",
    "Lalka;Bolesław Prus;1890;1;Novel",
    "Short;A;1",
    f"{'x' * 1001};A;1;5;Novel",
    "Short;A;99999999999;5;Novel",
]
GERMAN_REASONS = [
    "author: Die Angabe fehlt.",
    "isbn: Das Buch in Zeile 2 hat sie.",
    "row: Sie hat 3 Zellen, die erste Zeile 5.",
    "title: Die Angabe ist länger als 1.000 Zeichen.",
    "year: Dieses Jahr ist für ein Buch unwahrscheinlich.",
]


def read_in(browser: Client, language: str) -> None:
    browser.cookies[settings.LANGUAGE_COOKIE_NAME] = language


def check_in(browser: Client, language: str, content: str) -> Operation:
    """The worker is in this process, and serves one language after the other."""
    read_in(browser, language)
    with translation.override(language):
        _file, shown = check(browser, content.encode())
    operation: Operation = shown.context["operation"]
    return operation


def list_reasons(operation: Operation) -> list[str]:
    findings = ImportFinding.objects.filter(operation_id=operation.pk, kind="refused")
    return list(findings.order_by("position").values_list("reason", flat=True))


def test_records_are_refused_in_the_language_of_who_began_the_import(head: Client) -> None:
    content = HEADER + "\n".join(ROWS)
    assert list_reasons(check_in(head, "de", content)) == GERMAN_REASONS
    assert get_language() == settings.LANGUAGE_CODE
    assert list_reasons(check_in(head, "en", content))[0] == "author: It is missing."


def test_the_pages_of_an_import_are_german(head: Client) -> None:
    read_in(head, "de")
    file = upload(head, f"{HEADER}Café;Zoë;1890;1;Novel\n".encode("cp1252"))
    shown = head.get(page(file, "mapping")).content.decode()
    assert "Gelesen als CSV mit Semikolons, Windows-1252." in shown
    assert "Zeile 2 ist nicht in UTF-8. Die Datei ist vielleicht in Windows-1252" in shown
    incomplete = choose(head, file, column_author="", column_year="").content.decode()
    assert "Die erste Zeile nennt keine Spalte author, year." in incomplete


def test_a_file_that_cannot_be_read_fails_in_the_language_of_who_began_the_check(head: Client) -> None:
    operation = check_in(head, "de", HEADER + "A;B;1;1;G\n" * 6 + '"never closed')
    reason = 'Zeile 8: Ein Anführungszeichen (") wird geöffnet und nie geschlossen.'
    assert (operation.state, operation.error) == ("failed", reason)


def test_an_operation_fails_in_the_language_of_who_began_it(head: Client, berta: User) -> None:
    read_in(head, "de")
    question = head.post("/admin/books/book/bulk_edit/?genre=none", {"change": "delete"})
    head.post("/admin/books/book/bulk_edit/?genre=none", read_inputs(read_text(question)))
    berta.groups.clear()
    run_operations()
    assert Operation.objects.get().error == "Wer das begonnen hat, darf es nicht mehr."


def test_the_page_of_a_check_counts_the_reasons_and_names_the_fields(head: Client) -> None:
    books = [build_exported_book(id=number, isbn=isbn) for number, isbn in enumerate(["LOC 17", "LOC 18", "1"], 1)]
    file, response = check(head, write_books("marc", books))
    shown = response.content.decode()
    assert '020$a: This is no valid ISBN. <span class="count">3</span>' in shown
    assert ">Record 2<" in shown
    assert "Line " not in shown
    operation = confirm(head, file, action="import_all")
    assert (operation.result or {})["reasons"] == {"doubtful": {}, "refused": {}}
