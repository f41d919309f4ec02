"""Files that head librarians import in the admin."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, connection, transaction
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from books.files import uploads
from books.files.formats.records import UnreadableFile
from books.files.formats.registry import FORMATS
from books.files.import_operations import (
    CheckedAgain,
    FileInUse,
    begin_check,
    begin_import,
    begin_preview,
    save_corrections,
)
from books.files.import_tasks import get_counts
from books.files.parsing import ImportRules
from books.files.reader.client import copy_file
from books.files.uploads import CHUNK_BYTES, KEPT_DAYS, begin_upload, build_source, iter_expired
from books.history.actors import ActorRef, get_or_create_actor
from books.models import Actor, Book, Change, ImportChunk, ImportCorrection, ImportFile, ImportFinding, Operation
from books.operations import worker
from books.operations.lifecycle import cancel_operation
from library_site.jobs.expiry import delete_by_kind
from library_site.jobs.leases import LeaseLost, has_due
from tests.support.book_files import build_exported_book, read_records, write_books
from tests.support.books import build_isbn
from tests.support.books_admin import create_book
from tests.support.concurrency import start_concurrently
from tests.support.imports import (
    IMPORT,
    check,
    choose,
    confirm,
    count_kinds,
    page,
    post_confirmation,
    post_rules,
    store_file,
    upload,
)
from tests.support.operations import begin_check as begin_operation
from tests.support.operations import claim_runner, do_undo, run_operations
from webhooks.models import Event

NOTHING = "Nothing in the file is to be imported."
HEADER = "Titel;Verfasser;Jahr;ISBN;Gattung\n"
# A file of one new book.
LALKA = f"{HEADER}Lalka;Bolesław Prus;1890;9780306406157;Novel\n".encode()


@pytest.fixture
def importer(berta: User) -> ActorRef:
    return get_or_create_actor(Actor.Channel.IMPORT, user_id=berta.pk)


def read_content(file: ImportFile) -> bytes:
    with copy_file(build_source(file, "")) as copy:
        copy.seek(0)
        return copy.read()


def send_part(browser: Client, file: ImportFile, number: str, content: bytes) -> Any:
    part = SimpleUploadedFile("chunk", content) if content else ""
    headers = {"Accept": "application/json"}
    return browser.post(page(file, "chunk"), {"number": number, "chunk": part}, headers=headers)


def test_a_file_that_is_not_read_or_has_no_record_is_refused_by_its_preview(head: Client) -> None:
    for content, reason in (
        (b"<mods/>", "This is MODS, which the library cannot read. Save it as MARCXML or RIS."),
        (b"<collection/>", "No record was found in the file. It was read as MARCXML."),
        (
            b"title,author,year,isbn,genre,a\0b\nA,B,1,1,C,D\n",
            "The name of a column has a character that cannot be stored.",
        ),
    ):
        file = upload(head, content)
        assert f'role="alert">{reason}' in head.get(page(file, "mapping")).content.decode()


def test_a_file_is_checked_imported_and_undone(head: Client, berta: User) -> None:
    there = create_book(title="Emma", isbn="there", year=1815)
    rows = [
        "Emma;Jane Austen;1816;there;Novel",
        "Lalka;Bolesław Prus;1890;9780306406157;Novel",
        "Quo vadis;;1896;other;Novel",
        "Dziady;Adam Mickiewicz;MDCCC;third;Drama",
    ]
    file = upload(head, (HEADER + "\n".join(rows)).encode())
    check = choose(head, file, on_match="replace")
    assert count_kinds(check) == {"new": 1, "changed": 1, "refused": 2}
    assert Book.objects.count() == 1
    assert [row.reason for row in check.context["report"].rows] == [
        "Verfasser: It is missing.",
        "Jahr: “MDCCC” is no year.",
    ]
    assert "<del>1815</del> <bdi>1816</bdi>" in head.get(f"{page(file, 'check')}?kind=changed").content.decode()
    import_operation = confirm(head, file)
    assert list(Book.objects.order_by("pk").values_list("title", "year")) == [("Emma", 1816), ("Lalka", 1890)]
    changes = Change.objects.filter(operation=import_operation)
    assert {change.actor.channel for change in changes} == {Actor.Channel.IMPORT}
    returned = head.get(page(file, "refused"))
    assert returned["Content-Disposition"] == 'attachment; filename="books.failed.csv"'
    assert returned.getvalue().decode("utf-8-sig").splitlines() == [
        "line;reason;Titel;Verfasser;Jahr;ISBN;Gattung",
        "4;Verfasser: It is missing.;Quo vadis;;1896;other;Novel",
        "5;Jahr: “MDCCC” is no year.;Dziady;Adam Mickiewicz;MDCCC;third;Drama",
    ]
    do_undo(import_operation, get_or_create_actor(Actor.Channel.OPERATION, user_id=berta.pk))
    assert list(Book.objects.values_list("pk", "year")) == [(there.pk, 1815)]


def work_if_due() -> None:
    if has_due(Operation):
        run_operations()


def work_behind_insertion(execute: Any, sql: str, *arguments: Any) -> Any:
    """Lets a worker do what it sees when an operation has just been inserted."""
    result = execute(sql, *arguments)
    if sql.startswith('INSERT INTO "books_operation"'):
        start_concurrently(work_if_due).result()
    return result


def test_a_worker_that_is_fast_has_the_rules_and_what_was_confirmed(transactional_db: None, head: Client) -> None:
    with transaction.atomic():
        create_book(title="Emma", isbn="978-0-14-143951-8")
    file = upload(head, f"{HEADER}Emma 2;Jane Austen;1815;0141439513;Novel\n".encode())
    assert count_kinds(choose(head, file)) == {"left": 1}
    with connection.execute_wrapper(work_behind_insertion):
        address = post_rules(head, file, on_match="replace")["Location"]
    run_operations()
    assert count_kinds(head.get(address)) == {"doubtful": 1}
    with connection.execute_wrapper(work_behind_insertion):
        post_confirmation(head, file, action="import_all")
    run_operations()
    assert Book.objects.get().title == "Emma 2"


def test_a_check_by_other_rules_ends_the_one_before(head: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have the counts of their own, also if a worker is in the middle of the first one."""
    monkeypatch.setattr(worker, "BATCH_SIZES", dict.fromkeys(worker.BATCH_SIZES, 1))
    create_book(isbn="1")
    create_book(isbn="2")
    file = upload(head, f"{HEADER}A;B;1815;1;Novel\nA;B;1815;2;Novel\n".encode())
    post_rules(head, file, on_match="refuse")
    first = claim_runner()
    first.advance(), first.advance()
    address = post_rules(head, file, on_match="leave")["Location"]
    with pytest.raises(LeaseLost):
        first.advance()
    run_operations()
    assert count_kinds(head.get(address)) == {"left": 2}
    checks = Operation.objects.filter(kind="import check").order_by("pk")
    assert [(check.state, (check.result or {})["counts"]) for check in checks] == [
        ("cancelled", {"refused": 1}),
        ("done", {"left": 2}),
    ]


def test_a_file_is_neither_checked_nor_read_otherwise_while_it_is_imported(head: Client, importer: ActorRef) -> None:
    """The page would show another check than the one that was confirmed."""
    file, _shown = check(head, LALKA)
    post_confirmation(head, file, follow=False)
    with pytest.raises(FileInUse):
        begin_check(file.pk, ImportRules({}), importer, timezone.now())
    with pytest.raises(FileInUse):
        save_corrections(file.pk, Operation.objects.latest("pk").pk, {})
    run_operations()
    # Another encoding could count the records otherwise.
    response = head.post(page(file, "mapping"), {"encoding": "utf-16"}, follow=True)
    assert "The file is in use" in response.content.decode()
    assert list(Operation.objects.order_by("pk").values_list("kind", flat=True)) == ["import check", "import"]


def begin_confirmed(actor: ActorRef) -> None:
    """Begins the import of the first check, as a click does that arrives later."""
    check = Operation.objects.earliest("pk")
    file = ImportFile.objects.get()
    begin_import(file.pk, check.pk, actor, timezone.now(), take_doubtful=False, events=True)


def test_two_clicks_at_the_same_time_begin_one_import(transactional_db: None, head: Client, importer: ActorRef) -> None:
    check(head, LALKA)
    clicks = [start_concurrently(lambda: begin_confirmed(importer)) for _ in range(2)]
    assert [click.result() for click in clicks] == [None] * 2
    run_operations()
    assert (Operation.objects.filter(kind="import").count(), Book.objects.count()) == (1, 1)


def test_who_changes_the_check_of_a_file_and_who_confirms_it_take_turns(
    transactional_db: None, head: Client, importer: ActorRef
) -> None:
    file, _shown = check(head, LALKA)
    with transaction.atomic():
        begin_check(file.pk, ImportRules({}), importer, timezone.now())
        click = start_concurrently(lambda: begin_confirmed(importer))
    with pytest.raises(CheckedAgain):
        click.result()
    assert not Operation.objects.filter(kind="import").exists()


def fail_at_file(execute: Any, sql: str, *arguments: Any) -> Any:
    if sql.startswith('UPDATE "books_importfile"'):
        raise OperationalError
    return execute(sql, *arguments)


def test_an_operation_that_its_file_does_not_know_is_not_stored(head: Client, importer: ActorRef) -> None:
    file, _shown = check(head, LALKA)
    with connection.execute_wrapper(fail_at_file):
        with pytest.raises(OperationalError):
            begin_check(file.pk, ImportRules({}), importer, timezone.now())
        with pytest.raises(OperationalError):
            begin_confirmed(importer)
    assert list(Operation.objects.filter(next_at__isnull=False)) == []


def send_file(browser: Client, content: bytes) -> ImportFile:
    """Uploads a file that no worker looks into yet."""
    browser.post(IMPORT, {"file": SimpleUploadedFile("books.csv", content)})
    return ImportFile.objects.latest("pk")


def test_the_page_waits_until_a_worker_has_looked_into_the_file(head: Client) -> None:
    """With a link and a refresh for browsers without the script."""
    file = send_file(head, LALKA)
    operation = Operation.objects.get()
    waiting = head.get(page(file, "mapping")).content.decode()
    assert f'data-address="/admin/books/book/operations/{operation.pk}/progress/"' in waiting
    assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in waiting
    assert f'<a href="{page(file, "mapping")}">Show this page again</a>' in waiting
    # Nothing is chosen, and nothing checked, before the columns are known.
    assert head.post(page(file, "mapping"), {"match_by": "isbn"}).status_code == 200
    assert list(Operation.objects.values_list("kind", flat=True)) == ["import preview"]
    run_operations(operation)
    assert (operation.state, operation.result) == (
        "done",
        {
            "format": "csv",
            "columns": ["Titel", "Verfasser", "Jahr", "ISBN", "Gattung"],
            "description": "CSV with semicolons, UTF-8",
            "warning": "",
            "proposed": [],
            "notes": [],
            "rows": [["Lalka", "Bolesław Prus", "1890", "9780306406157", "Novel"]],
            "left_out": "",
        },
    )
    shown = head.get(page(file, "mapping")).content.decode()
    assert "operation-progress" not in shown
    assert "Read as CSV with semicolons, UTF-8." in shown


def test_a_look_into_a_file_can_be_asked_for_again(head: Client) -> None:
    """Also for a file that was uploaded before there were any."""
    file = send_file(head, LALKA)
    cancel_operation(Operation.objects.get().pk)
    assert "Read it again" in head.get(page(file, "mapping")).content.decode()
    ImportFile.objects.update(preview_operation=None)
    assert "Read it again" in head.get(page(file, "mapping")).content.decode()
    head.post(page(file, "mapping"), {"encoding": ""})
    run_operations()
    assert "Read as CSV" in head.get(page(file, "mapping")).content.decode()


def test_another_encoding_ends_the_look_before_and_leaves_a_check_alone(head: Client) -> None:
    file = send_file(head, f"{HEADER}Café;Zoë;1890;9780306406157;Novel\n".encode("cp1252"))
    head.post(page(file, "mapping"), {"encoding": "windows-1252"})
    run_operations()
    post_rules(head, file)
    head.post(page(file, "mapping"), {"encoding": "utf-8"})
    run_operations()
    states = Operation.objects.order_by("pk").values_list("kind", "state", "parameters__encoding")
    assert list(states) == [
        ("import preview", "cancelled", ""),
        ("import preview", "done", "windows-1252"),
        ("import check", "done", "windows-1252"),
        ("import preview", "done", "utf-8"),
    ]
    confirm(head, file)
    assert Book.objects.get().title == "Café"
    assert count_kinds(head.get(page(file, "check"))) == {"new": 1}


def test_a_file_that_no_reader_survives_fails_in_words(head: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    file, _shown = check(head, f"{HEADER}Lalka;;1890;9780306406157;Novel\n".encode())
    monkeypatch.setattr("books.files.reader.tasks.require_storable_columns", raise_memory_error)
    head.post(page(file, "mapping"), {"encoding": ""})
    run_operations()
    reason = "The file takes too much time or memory to be read."
    assert reason in head.get(page(file, "mapping")).content.decode()
    # What comes back is read by it, too.
    assert f"Books: {reason}" in head.get(page(file, "refused"), follow=True).content.decode()


def raise_memory_error(_table: Any) -> None:
    raise MemoryError


def begin(browser: Client, size: int, fingerprint: str = "") -> Any:
    form = {"name": "a", "size": str(size), "fingerprint": fingerprint}
    return browser.post(IMPORT, form, headers={"Accept": "application/json"})


def test_a_person_has_a_quota_of_files_and_of_bytes(head: Client, astrid: User, settings: Settings) -> None:
    settings.UPLOAD_MAX_FILES, settings.UPLOAD_MAX_MEGABYTES = 2, 3
    begin_upload(astrid.pk, "a", 10, "f", timezone.now())
    bytes_message = "Your files here may have 3 MB together. Delete some of them."
    files_message = "You have 2 files here, and no more fit. Delete some of them."
    # The last one goes on, and is no further file.
    for size, fingerprint, message in (
        (1_000_000, "f", ""),
        (2_000_001, "g", bytes_message),
        (2_000_000, "g", ""),
        (10, "h", files_message),
        (2_000_000, "g", ""),
    ):
        response = begin(head, size, fingerprint)
        assert (response.status_code, response.json().get("message", "")) == (422 if message else 200, message)
    response = head.post(IMPORT, {"file": SimpleUploadedFile("books.csv", b"title")}, follow=True)
    assert files_message in response.content.decode()
    head.post(page(ImportFile.objects.get(fingerprint="g"), "delete"))
    assert begin(head, 10, "h").status_code == 200


def test_two_uploads_at_the_same_time_do_not_share_the_rest_of_a_quota(
    transactional_db: None, berta: User, settings: Settings
) -> None:
    settings.UPLOAD_MAX_FILES = 1
    with transaction.atomic():
        begin_upload(berta.pk, "a", 10, "f", timezone.now())
        other = start_concurrently(lambda: begin_upload(berta.pk, "a", 10, "g", timezone.now()))
    with pytest.raises(UnreadableFile):
        other.result()


def test_a_file_is_deleted_with_its_parts_and_what_was_found(head: Client) -> None:
    file, _shown = check(head, f"{HEADER}Lalka;;1890;9780306406157;Novel\n".encode())
    assert [model.objects.count() for model in (ImportChunk, ImportFinding, ImportCorrection)] == [1, 1, 1]
    assert "Delete books" in head.get(IMPORT).content.decode()
    response = head.post(page(file, "delete"), follow=True)
    assert "“books” is deleted." in response.content.decode()
    assert not any(model.objects.exists() for model in (ImportFile, ImportChunk, ImportFinding, ImportCorrection))


def test_a_file_that_a_worker_reads_is_not_deleted(head: Client, berta: User, importer: ActorRef) -> None:
    file = store_file(LALKA, berta.pk)
    for begin in (
        lambda: begin_preview(file.pk, "", importer, timezone.now()),
        lambda: begin_check(file.pk, ImportRules(**(file.rules or {})), importer, timezone.now()),
        lambda: post_confirmation(head, file, follow=False),
    ):
        begin()
        response = head.post(page(file, "delete"), follow=True)
        assert "The file is in use: cancel its check or import first." in response.content.decode()
        run_operations()
    assert Book.objects.count() == 1


@pytest.mark.unannounced
def test_an_import_of_many_records_can_do_without_events(head: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("books.admin.files.imports.MAX_ANNOUNCED_ALWAYS", 0)
    monkeypatch.setattr("books.operations.tasks.MAX_ANNOUNCED_ALWAYS", 0)
    file, shown = check(head, LALKA)
    assert "no_events" in shown.content.decode()
    confirm(head, file, no_events="on")
    assert Book.objects.count() == 1
    assert not Event.objects.exists()


def test_an_import_of_nothing_is_not_offered_and_refused(head: Client) -> None:
    create_book(isbn="taken")
    file, shown = check(head, f"{HEADER}Emma;Jane Austen;1815;taken;Novel\n".encode())
    assert NOTHING in shown.content.decode()
    assert "button primary" not in shown.content.decode()
    assert "All its books are in the library already" in shown.content.decode()
    assert NOTHING in post_confirmation(head, file).content.decode()
    file.refresh_from_db()
    assert file.import_operation is None


ENCODINGS = [
    # Each name is wrong as UTF-8, or only those of one line.
    (f"{HEADER}Café;Zoë;1890;1;Novel\n".encode("cp1252"), "Line 2 is not UTF-8", "Windows-1252"),
    (f"{HEADER}Café;Zoë;1890;1;Novel\n".encode() + b"Caf\xe9;Zo\xeb;1890;2;Novel\n", "Line 3 is not UTF-8", "UTF-8"),
]


def test_an_encoding_is_guessed_and_others_are_offered(head: Client) -> None:
    for content, warning, encoding in ENCODINGS:
        shown = head.get(page(upload(head, content), "mapping")).content.decode()
        for words in (warning, 'value="windows-1252" selected', f"Read as CSV with semicolons, {encoding}.", "Café"):
            assert words in shown, words
    file = upload(head, b"00035nam a2200000 a 4500245001400000\x1e00\x1fa\xe2Etranger\x1e\x1d")
    shown = head.get(page(file, "mapping")).content.decode()
    assert "1 record says that it is in UTF-8, and is not." in shown
    assert '<option value="marc-8">MARC-8</option>' in shown
    assert "UTF-16" not in shown
    head.post(page(file, "mapping"), {"encoding": "marc-8"})
    run_operations()
    shown = head.get(page(file, "mapping")).content.decode()
    assert ["Étranger" in shown, "MARC 21, MARC-8" in shown] == [True, True]


def test_records_without_an_isbn_are_left_out_or_use_their_numbers(head: Client) -> None:
    rows = b"1;Emma;Jane;1815;9780306406157;Novel\n7;Rings;Doe;1999;;Novel\n"
    file = upload(head, b"id;title;author;year;isbn;genre\n" + rows)
    numbered = choose(head, file, without_isbn="number").content.decode()
    assert "2 books to add, 1 by the number of its record" in numbered
    shown = choose(head, file, without_isbn="leave")
    assert count_kinds(shown) == {"new": 1, "no isbn": 1}
    assert 'Without ISBN <span class="count">1</span>' in shown.content.decode()
    assert head.get(page(file, "mapping")).context["form"]["without_isbn"].value() == "leave"
    operation = confirm(head, file)
    assert (operation.changed, operation.unchanged, operation.refused) == (1, 1, 0)
    assert [book.title for book in Book.objects.all()] == ["Emma"]


@pytest.mark.parametrize("on_match", ["leave", "replace"])
def test_another_file_with_the_same_numbers_changes_no_book_unasked(
    berta: User, importer: ActorRef, on_match: str
) -> None:
    found = {"leave": {"left": 1}, "replace": {"changed": 1}}[on_match]
    create_book(title="Emma", author="Jane Austen", isbn="no. 5")
    create_book(title="Emma", author="Jane Austen", isbn="(DE-101)5")
    by_id = f"{Book.objects.earliest('pk').pk};Persuasion;Jane;1817;no. 5;Novel"
    for row, kinds in [
        # The same work is the same record again, in any writing.
        ("5;Emma: a novel;Austen, Jane;1815;;Novel", found),
        ("5;Ulysses;Joyce;1922;;", {"doubtful": 1} if on_match == "replace" else {"refused": 1}),
        # A source makes the number unique. So is the id of a book.
        ("(DE-101)5;Persuasion;Jane;1817;;Novel", found),
        ("(DE-627)5;Emma;Jane;1815;;Novel", {"new": 1}),
        (by_id, found),
    ]:
        rules = {"on_match": on_match, "match_by": "id" if row == by_id else "isbn13", "use_number": True}
        content = f"id;title;author;year;isbn;genre\n{row}\n".encode()
        operation = begin_operation(importer, store_file(content, berta.pk, defaults={"genre": "Novel"}, **rules))
        run_operations(operation)
        assert get_counts(operation) == kinds, row
        if "Ulysses" in row:
            assert "has this number, and another title or author" in ImportFinding.objects.latest("pk").reason


@pytest.mark.parametrize(("name", "rejected_name"), [("marc", "marc"), ("xlsx", "csv")])
def test_rejected_records_come_back_as_marc_or_as_csv(head: Client, name: str, rejected_name: str) -> None:
    isbns = [build_isbn(1), build_isbn(1), build_isbn(2)]
    file, shown = check(head, write_books(name, [build_exported_book(isbn=isbn) for isbn in isbns]))
    assert count_kinds(shown) == {"new": 2, "refused": 1}
    response = head.get(page(file, "refused"))
    assert FORMATS[rejected_name].extension in response["Content-Disposition"]
    [returned] = read_records(rejected_name, response.getvalue())
    assert returned.values["isbn"] == isbns[0]


def test_a_check_of_a_release_that_completed_records_is_shown_and_imported(head: Client) -> None:
    """Its rules and its findings name the catalogues."""
    file = upload(head, LALKA)
    choose(head, file)
    operation = Operation.objects.get(kind="import check")
    parameters = operation.parameters or {}
    operation.parameters = {**parameters, "rules": {**parameters["rules"], "complete_missing": True}}
    operation.save()
    ImportFile.objects.update(rules=operation.parameters["rules"])
    others = {"line": 2, "reason": "sru.example", "after": {"genre": "Novel"}}
    ImportFinding.objects.create(file=file, operation_id=operation.pk, kind="catalogue", position=1, **others)
    assert count_kinds(head.get(page(file, "check"))) == {"new": 1}
    assert head.get(page(file, "mapping")).status_code == 200
    confirm(head, file)
    assert Book.objects.get().title == "Lalka"


def test_a_large_file_comes_in_parts_and_goes_on_where_it_was(head: Client, astrid: User) -> None:
    rows = b"".join(b"Lalka,Prus,1890,isbn%d,%s\n" % (number, b"x" * 100) for number in range(9_000))
    content = b"title,author,year,isbn,genre\n" + rows
    begin = {"name": "books.csv", "size": str(len(content)), "fingerprint": "books.csv|1"}
    response = head.post(IMPORT, begin, headers={"Accept": "application/json"}).json()
    file = ImportFile.objects.get()
    for number in (0, 0, 2, 1):
        chunk = content[number * CHUNK_BYTES : (number + 1) * CHUNK_BYTES]
        parts = {"number": str(number), "chunk": SimpleUploadedFile("chunk", chunk)}
        sent = head.post(response["chunk_address"], parts)
        assert sent.status_code == (409 if number == 2 else 200)
        assert head.post(IMPORT, begin, headers={"Accept": "application/json"}).json()["next"] == sent.json()["next"]
    assert head.get(response["mapping_address"], follow=True).redirect_chain == [(IMPORT, 302)]
    last = SimpleUploadedFile("chunk", content[2 * CHUNK_BYTES :])
    assert head.post(response["chunk_address"], {"number": "2", "chunk": last}).json() == {"next": 3}
    assert read_content(file) == content
    assert ImportFile.objects.count() == 1
    # The same file of another person is a file of its own.
    assert begin_upload(astrid.pk, "books.csv", len(content), begin["fingerprint"], timezone.now()) != file


def test_an_upload_goes_on_with_the_same_file_only(head: Client, berta: User) -> None:
    now = timezone.now()
    file = begin_upload(berta.pk, "a", 10, "f", now)
    assert begin_upload(berta.pk, "a", 10, "f", now) == file
    assert begin_upload(berta.pk, "a", 11, "f", now) != file
    assert begin_upload(berta.pk, "a", 10, "g", now) != file
    ImportFile.objects.filter(pk=file.pk).update(check_operation=1)
    assert begin_upload(berta.pk, "a", 10, "f", now) != file


def test_a_file_that_fits_into_a_request_comes_without_the_script(head: Client) -> None:
    """Also of a size that another file has."""
    for size in (CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES - 1000):
        files = [content * size for content in (b"a", b"b")]
        assert [read_content(send_file(head, content)) == content for content in files] == [True, True], size


def test_a_part_that_is_there_is_not_taken_for_another(head: Client) -> None:
    """Two files have the same fingerprint: one was written again within the clock's resolution, or two tabs send."""
    begin(head, 10)
    file = ImportFile.objects.get()
    send_part(head, file, "0", b"0123456789")
    response = send_part(head, file, "0", b"9876543210")
    assert (response.status_code, "has changed since its upload began" in response.json()["message"]) == (422, True)
    assert send_part(head, file, "0", b"0123456789").json() == {"next": 1}
    assert read_content(file) == b"0123456789"


def test_a_part_has_the_length_that_its_number_has(head: Client) -> None:
    """Otherwise the bytes behind it would be read at the wrong place."""
    begin(head, CHUNK_BYTES + 10)
    file = ImportFile.objects.get()
    sent = [("0", length) for length in (CHUNK_BYTES - 1, CHUNK_BYTES + 1, 10, CHUNK_BYTES)]
    sent += [("1", length) for length in (9, 11, CHUNK_BYTES, 10)] + [("2", 0), ("x", 3), ("-1", 3), ("9", 3)]
    statuses = [send_part(head, file, number, b"x" * length).status_code for number, length in sent]
    assert statuses == [409, 409, 409, 200, 409, 409, 409, 200, 409, 409, 409, 409]
    assert head.post(page(file, "chunk"), {"number": "0", "chunk": "x"}).status_code == 409


def test_nul_in_other_fields_is_no_failure(head: Client) -> None:
    file = upload(head, LALKA)
    for address, field in (
        *((IMPORT, "size"), (page(file, "chunk"), "number"), (page(file, "check"), "shown")),
        *((page(file, "mapping"), field) for field in ("encoding", "default_genre", "match_by", "column_title")),
    ):
        assert head.post(address, {"name": "a", "size": "1", field: "a\0b"}).status_code < 500, field
    assert not Operation.objects.filter(kind="import").exists()


def test_a_file_that_lacks_an_earlier_part_is_not_complete(head: Client, berta: User) -> None:
    file = begin_upload(berta.pk, "a", CHUNK_BYTES + 1, "f", timezone.now())
    file.chunks.create(number=1, content=b"x")
    assert head.get(page(file, "mapping"), follow=True).redirect_chain == [(IMPORT, 302)]


def test_bad_uploads_are_refused(head: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_UPLOAD_BYTES", 10)
    for form, message in (
        ({"name": "a", "size": "11"}, "too large"),
        ({"size": "x"}, "Choose a file"),
        ({"name": "a\0b", "size": "10"}, "The name of the file has a character that cannot be stored."),
        (
            {"name": "a", "size": "10", "fingerprint": "a\0b"},
            "The name of the file has a character that cannot be stored.",
        ),
    ):
        response = head.post(IMPORT, form, headers={"Accept": "application/json"})
        assert (response.status_code, message in response.json()["message"]) == (422, True)
        assert message in head.post(IMPORT, form, follow=True).content.decode()
    assert not ImportFile.objects.exists()


def test_a_file_that_cannot_be_read_to_its_end_imports_nothing(head: Client) -> None:
    file, shown = check(head, b"title,author,year,isbn,genre\n" + b"A,B,1,1,G\n" * 6 + b'"never closed')
    assert "Line 8: a quotation mark (&quot;) is opened and never closed" in shown.content.decode()
    assert "The file is not checked yet." in post_confirmation(head, file).content.decode()
    assert not Operation.objects.filter(kind="import").exists()


def test_only_head_librarians_import_and_each_sees_their_own_files(librarian: Client, astrid: User) -> None:
    assert librarian.get(IMPORT).status_code == 403
    other = User.objects.create_user("other", is_staff=True)
    file = ImportFile.objects.create(user=other, name="a", size=1, created_at=timezone.now())
    astrid.groups.add(Group.objects.get(name="Head librarians"))
    assert librarian.get(IMPORT).status_code == 200
    for name in ("mapping", "check", "refused", "chunk", "delete"):
        assert librarian.post(page(file, name)).status_code == 404


def test_files_are_kept_for_seven_days(head: Client) -> None:
    check(head, LALKA)
    for days, count in ((KEPT_DAYS - 1, 0), (KEPT_DAYS, 1)):
        deleted = delete_by_kind(iter_expired(timezone.now() + timedelta(days=days)))
        assert deleted == {"parts of uploaded files": count, "uploaded files": count}
    assert not ImportChunk.objects.exists()
    assert not ImportFinding.objects.exists()
