"""Each door of the library keeps the rules for the fields of a book, of which there is one table.

A door is one test: a failure shows each rule of which it says something else.
"""

import json
from functools import partial
from typing import Any, NamedTuple

import httpx
import pytest
from django.contrib.admin import site
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.test import RequestFactory

from books.admin.book.forms import SHOWN_WARNINGS
from books.admin.operations.bulk_edit import BulkEditForm
from books.files.formats.records import Record
from books.files.parsing import ImportRules, parse_records
from books.models import Book
from tests.support.books import MAX_LENGTHS, build_book
from tests.support.field_rules import (
    BLANK,
    FRACTION,
    NOT_INTEGER,
    NOT_TEXT,
    NUL,
    RULES,
    SURROGATE,
    TOO_HIGH,
    TOO_LONG,
    TOO_LOW,
    VALUES,
    YEAR_TEXTS,
    FieldError,
    Rule,
    list_differences,
)
from tests.support.openapi import V1_DOCUMENT_URL, V2_DOCUMENT_URL, get_body_schema, is_valid
from tests.support.request_strategies import write_object

FIELDS = tuple(build_book())
REFUSED = "refused"
NUMBER_RULES = [rule for rule in VALUES if rule.member != "year" and rule.literal == "123"]
YEAR_VERDICTS = {text: REFUSED if year is None else str(year) for text, year in YEAR_TEXTS.items()}


class Door(NamedTuple):
    """An address to which fields of books are sent; `bulk` is the kind of the operation with which they are."""

    method: str
    path: str
    is_whole: bool = True
    bulk: str = ""

    @property
    def is_v1(self) -> bool:
        return self.path.startswith("/api/books")

    @property
    def makes_books(self) -> bool:
        return "{pk}" not in self.path and self.bulk != "update"

    def send(self, api: httpx.Client, rule: Rule, pk: int) -> httpx.Response:
        fields = {name: json.dumps(value) for name, value in build_book().items()} if self.is_whole else {}
        body = write_object({**fields, rule.member: rule.literal}.items())
        if self.bulk:
            head = f'"op": "{self.bulk}"' + (f', "id": {pk}' if self.bulk == "update" else "")
            body = f'{{"operations": [{{{head}, "book": {body}}}]}}'
        return api.request(self.method, self.path.format(pk=pk), content=body)


DOORS = [
    Door("POST", "/api/books"),
    Door("PUT", "/api/books/{pk}", is_whole=False),
    Door("POST", "/api/v2/books"),
    Door("PUT", "/api/v2/books/{pk}"),
    Door("PATCH", "/api/v2/books/{pk}", is_whole=False),
    Door("POST", "/api/v2/books/bulk", is_whole=False, bulk="update"),
]


def get_problem(door: Door, rule: Rule) -> FieldError | None:
    return rule.lenient_problem if door.is_v1 else rule.problem


@pytest.mark.parametrize("door", DOORS, ids=lambda door: " ".join(filter(None, (door.method, door.path, door.bulk))))
def test_a_request_keeps_the_rules(api: httpx.Client, book: dict[str, Any], door: Door) -> None:
    refused = [rule for rule in RULES if get_problem(door, rule)]
    assert not list_differences(
        refused, lambda rule: read_error(door, door.send(api, rule, book["id"])), partial(build_error_body, door)
    )
    assert api.get("/api/books").json() == [book]
    accepted = [rule for rule in RULES if not get_problem(door, rule)]
    assert not list_differences(
        accepted,
        lambda rule: read_stored(api, door, rule, book["id"]),
        lambda rule: ascii(rule.value if door.is_v1 else rule.clean_value),
    )
    assert Book.objects.count() == 1 + len(accepted) * door.makes_books


def read_error(door: Door, response: httpx.Response) -> tuple[int, list[tuple[str, ...]]]:
    if door.is_v1 or response.is_success:
        problems = [] if response.is_success else response.json()["detail"]
        return response.status_code, [(".".join(item["loc"]), item["type"], item["msg"]) for item in problems]
    return response.status_code, [(item["field"], item["message"]) for item in response.json()["error"]["details"]]


def build_error_body(door: Door, rule: Rule) -> tuple[int, list[tuple[str, ...]]]:
    problem: Any = get_problem(door, rule)
    if door.is_v1:
        return 422, [(f"body.{rule.member}", *problem)]
    return 422, [(f"0.{rule.member}" if door.bulk else rule.member, problem.message)]


def read_stored(api: httpx.Client, door: Door, rule: Rule, pk: int) -> str:
    """Returns the value as the response and the stored book have it, or the response if it is a refusal."""
    response = door.send(api, rule, pk)
    if not response.is_success:
        return response.text
    shown = response.json()["results"][0] if door.bulk else response.json()
    stored = api.get(f"/api/v2/books/{shown['id']}").json()
    return " or ".join({ascii(book[rule.member]): book for book in ({**stored, **shown}, stored)})


DOCUMENTED_BODIES = [
    (V1_DOCUMENT_URL, "post", "/api/books"),
    (V1_DOCUMENT_URL, "put", "/api/books/{book_id}"),
    (V2_DOCUMENT_URL, "post", "/api/v2/books"),
    (V2_DOCUMENT_URL, "put", "/api/v2/books/{book_id}"),
    (V2_DOCUMENT_URL, "patch", "/api/v2/books/{book_id}"),
]


@pytest.mark.parametrize(("url", "method", "address"), DOCUMENTED_BODIES)
def test_a_document_allows_what_its_body_may_be(api: httpx.Client, url: str, method: str, address: str) -> None:
    document = api.get(url).json()
    schema = get_body_schema(document, method, address)
    # A schema cannot forbid half a character.
    rules = [rule for rule in VALUES if rule.problem != SURROGATE]

    def get_expected(rule: Rule) -> bool:
        return not (rule.lenient_problem if url == V1_DOCUMENT_URL else rule.problem)

    def is_allowed(rule: Rule) -> bool:
        return is_valid(document, schema, build_book(**{rule.member: json.loads(rule.literal)}))

    assert not list_differences(rules, is_allowed, get_expected)
    parts = [{name: value for name, value in build_book().items() if name != omitted} for omitted in FIELDS]
    may_omit = method == "patch" or address == "/api/books/{book_id}"
    assert {is_valid(document, schema, part) for part in parts} == {may_omit}


IMPORT_REASONS = {
    NOT_TEXT: "It is no text.",
    BLANK: "It is missing.",
    NUL: "It has a character that cannot be stored.",
    SURROGATE: "It has bytes that the encoding of the file does not know.",
    NOT_INTEGER: "It is no whole number.",
    FRACTION: "It is no whole number.",
    TOO_LOW: "This year is improbable for a book.",
    TOO_HIGH: "This year is improbable for a book.",
}


# Texts of other programs that an import mends.
MENDED_TEXTS = {"<b>&amp;'\"\\/%_": "&'\"\\/%_"}


def test_an_import_keeps_the_rules() -> None:
    # An empty cell is no field; texts are read as numbers, and whole numbers as texts.
    skipped = {*NUMBER_RULES, *(rule for rule in VALUES if rule.literal == "null" or rule.title.startswith('year "'))}
    rules = [rule for rule in VALUES if rule not in skipped]

    def get_expected(rule: Rule) -> str:
        if not rule.problem:
            return ascii(rule.value if rule.member == "isbn" else MENDED_TEXTS.get(rule.value, rule.clean_value))
        if rule.problem.type == "string_too_long":
            return f"{rule.member}: It is longer than {MAX_LENGTHS[rule.member]:,} characters."
        return f"{rule.member}: {IMPORT_REASONS[rule.problem]}"

    assert not list_differences(rules, lambda rule: read_record(rule.member, json.loads(rule.literal)), get_expected)
    assert [read_record(rule.member, json.loads(rule.literal)) for rule in NUMBER_RULES] == ["'123'"] * 4
    years = {text: read_record("year", text) for text in YEAR_TEXTS}
    assert {
        text: REFUSED if verdict.startswith("year: ") else verdict for text, verdict in years.items()
    } == YEAR_VERDICTS


def read_record(field: str, value: object) -> str:
    """Returns the value of a record that is imported, or what is wrong."""
    record = Record(2, build_book(**{field: value}), None)
    [parsed] = parse_records([record], ImportRules({name: name for name in FIELDS}))
    return parsed.problem or ascii(parsed.values[field])


TEXT_RULES = [rule for rule in VALUES if rule.member in MAX_LENGTHS and rule.literal.startswith('"')]


def test_an_instance_keeps_the_rules(db: None) -> None:
    """What is no text becomes one, as in every model of Django."""
    rules = [*TEXT_RULES, *(rule for rule in VALUES if rule.member == "year" and not rule.literal.startswith('"'))]
    rules = [rule for rule in rules if rule.literal not in ("true", "false", "19.5", "1e-9")]

    def save(rule: Rule) -> str:
        book = Book(**build_book(**{rule.member: json.loads(rule.literal)}))
        try:
            book.save()
        except ValidationError as error:
            return ", ".join(error.message_dict)
        return ascii(Book.objects.values_list(rule.member, flat=True).get(pk=book.pk))

    def get_expected(rule: Rule) -> str:
        # Django's `save` does not ask whether a text is blank.
        return rule.member if rule.problem and rule.problem != BLANK else ascii(rule.value)

    assert not list_differences(rules, save, get_expected)


FORM_RULES = [rule for rule in TEXT_RULES if rule.problem != SURROGATE]


def test_the_form_of_a_book_keeps_the_rules(db: None) -> None:
    request = RequestFactory().get("/")
    request.user = User.objects.create_superuser("root")
    form_class: Any = site.get_model_admin(Book).get_form(request)

    def submit(field: str, value: str) -> str:
        book = build_book(**{field: value})
        form = form_class(book)
        if not form.is_valid() and form.has_only_questions():
            form = form_class({**book, SHOWN_WARNINGS: " ".join(form.list_shown_tokens())})
        return ascii(form.cleaned_data[field]) if form.is_valid() else read_form_error(form, field)

    def get_expected(rule: Rule) -> str:
        return describe_form_error(rule, "This field is required.") or ascii(rule.clean_value)

    assert not list_differences(FORM_RULES, lambda rule: submit(rule.member, rule.value), get_expected)
    assert {text: submit("year", text) for text in YEAR_TEXTS} == YEAR_VERDICTS


def read_form_error(form: Any, field: str) -> str:
    """Returns the message about a text. Those about a year depend on where it is wrong."""
    return REFUSED if field == "year" else ", ".join(form.errors[field])


def describe_form_error(rule: Rule, blank: str) -> str:
    if rule.problem == TOO_LONG[rule.member]:
        length = len(rule.value.strip())
        return f"Ensure this value has at most {MAX_LENGTHS[rule.member]} characters (it has {length})."
    return blank if rule.problem == BLANK else rule.problem.message if rule.problem else ""


def test_a_bulk_edit_keeps_the_rules() -> None:
    def submit(field: str, value: str) -> str:
        form = BulkEditForm({"change": "set", field: value})
        return ascii(form.cleaned_data[field]) if form.is_valid() else read_form_error(form, field)

    def get_expected(rule: Rule) -> str:
        return describe_form_error(rule, "Write something besides blanks.") or ascii(rule.clean_value)

    # Where nothing is written, the field stays as it is. Nobody gives many books one isbn.
    rules = [rule for rule in FORM_RULES if rule.member != "isbn" and rule.value]
    assert not list_differences(rules, lambda rule: submit(rule.member, rule.value), get_expected)
    assert {text: submit("year", text) for text in YEAR_TEXTS} == YEAR_VERDICTS
