"""Many clients of version 2 at once, against the served library."""

from collections import Counter
from functools import partial
from typing import Any

import httpx
import pytest

from tests.support.books import new_book
from tests.support.concurrency import at_once, statuses
from tests.support.pages import refused
from tests.support.serving import Service

BOOKS = "/api/v2/books"
BULK = "/api/v2/books/bulk"


def create(service: Service) -> httpx.Response:
    with service.client() as client:
        return client.post(BOOKS, json=new_book())


def stored(service: Service, address: str) -> httpx.Response:
    with service.client() as client:
        return client.get(address)


def patch(client: httpx.Client, address: str, headers: dict[str, str] | None = None, **members: Any) -> httpx.Response:
    return client.patch(address, json=members, headers=headers)


def bulk(client: httpx.Client, operations: list[dict[str, Any]]) -> httpx.Response:
    return client.post(BULK, json={"operations": operations})


@pytest.fixture
def created(service: Service) -> httpx.Response:
    """The answer to the creation of a book."""
    return create(service)


@pytest.fixture
def address(created: httpx.Response) -> str:
    return created.headers["Location"]


def test_each_of_many_changes_is_a_version_of_its_own(service: Service, address: str) -> None:
    answers = at_once(service, [partial(patch, address=address, year=number) for number in range(16)])
    assert statuses(answers) == {200: 16}
    assert sorted(answer.json()["version"] for answer in answers) == list(range(2, 18))
    assert len({answer.headers["ETag"] for answer in answers}) == 16
    last = max(answers, key=lambda answer: int(answer.json()["version"]))
    assert stored(service, address).json() == last.json()
    assert stored(service, address).headers["ETag"] == last.headers["ETag"]


def test_equal_changes_at_once_are_one_version(service: Service, address: str) -> None:
    answers = at_once(service, [partial(patch, address=address, year=2000)] * 12)
    assert statuses(answers) == {200: 12}
    assert {answer.json()["version"] for answer in answers} == {2}
    assert len({answer.headers["ETag"] for answer in answers}) == 1


def test_changes_by_both_versions_are_all_counted(service: Service, address: str) -> None:
    in_version_1 = address.replace("/v2", "")
    calls = [partial(httpx.Client.put, url=in_version_1, json={"title": f"T{number}"}) for number in range(6)]
    answers = at_once(service, [*calls, *(partial(patch, address=address, year=number) for number in range(6))])
    assert statuses(answers) == {200: 12}
    assert stored(service, address).json()["version"] == 13


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_one_of_many_changes_of_one_state_succeeds(
    service: Service, created: httpx.Response, address: str, method: str
) -> None:
    headers = {"If-Match": created.headers["ETag"]}
    bodies = [new_book(title=f"T{number}") for number in range(12)]
    request = partial(httpx.Client.request, method=method, url=address, headers=headers)
    answers = at_once(service, [partial(request, json=body) for body in bodies])
    assert statuses(answers) == {200: 1, 412: 11}
    (changed,) = [answer for answer in answers if answer.is_success]
    assert stored(service, address).json() == changed.json()
    assert changed.json()["version"] == 2


def test_one_of_many_bulks_for_one_version_succeeds(service: Service, created: httpx.Response, address: str) -> None:
    operations = [
        {"op": "update", "id": created.json()["id"], "version": 1, "book": {"year": number}} for number in range(12)
    ]
    answers = at_once(service, [partial(bulk, operations=[one]) for one in operations])
    assert statuses(answers) == {200: 1, 409: 11}
    assert stored(service, address).json()["version"] == 2


def test_one_of_many_creations_of_one_isbn_succeeds(service: Service) -> None:
    body = new_book()
    calls = [
        partial(httpx.Client.post, url=BOOKS, json=body, headers={"Idempotency-Key": f"{body['isbn']}-{number}"})
        for number in range(12)
    ]
    answers = at_once(service, calls)
    assert statuses(answers) == {201: 1, 409: 11}
    (created,) = [answer for answer in answers if answer.is_success]
    conflicts = [answer for answer in answers if answer.is_error]
    assert [refused(answer) for answer in conflicts] == [(409, "CONFLICT", ["isbn"])] * 11
    links = {answer.headers["Link"].partition(BOOKS)[2] for answer in conflicts}
    assert links == {f'/{created.json()["id"]}>; rel="related"'}


def test_bulks_that_change_books_in_opposite_order_both_succeed(service: Service) -> None:
    ids = [create(service).json()["id"] for _ in range(20)]
    for round_ in range(5):
        operations = [{"op": "update", "id": pk, "book": {"year": round_}} for pk in ids]
        others = [{"op": "update", "id": pk, "book": {"genre": f"G{round_}"}} for pk in reversed(ids)]
        answers = at_once(service, [partial(bulk, operations=operations), partial(bulk, operations=others)])
        assert statuses(answers) == {200: 2}
    books = [stored(service, f"{BOOKS}/{pk}").json() for pk in ids]
    assert {(book["year"], book["genre"], book["version"]) for book in books} == {(4, "G4", 11)}


def test_one_of_two_bulks_that_create_isbns_in_opposite_order_succeeds(service: Service) -> None:
    for _ in range(4):
        operations = [{"op": "create", "book": new_book()} for _ in range(60)]
        answers = at_once(service, [partial(bulk, operations=operations), partial(bulk, operations=operations[::-1])])
        assert statuses(answers) == {200: 1, 409: 1}
        assert {refused(answer)[1] for answer in answers if answer.is_error} == {"CONFLICT"}
        (done,) = [answer.json()["results"] for answer in answers if answer.is_success]
        assert len({result["id"] for result in done}) == 60


def test_bulks_that_pass_isbns_around_never_lose_one(service: Service) -> None:
    books = [create(service).json() for _ in range(4)]
    isbns = Counter(book["isbn"] for book in books)
    for round_ in range(5):
        swaps = []
        for number, (one, other) in enumerate(zip(books, [*books[1:], books[0]], strict=True)):
            swaps.append(
                [
                    {"op": "update", "id": one["id"], "book": {"isbn": f"on its way {round_} {number}"}},
                    {"op": "update", "id": other["id"], "book": {"isbn": one["isbn"]}},
                    {"op": "update", "id": one["id"], "book": {"isbn": other["isbn"]}},
                ]
            )
        answers = at_once(service, [partial(bulk, operations=swap) for swap in swaps])
        assert statuses(answers).keys() <= {200, 409}
        books = [stored(service, f"{BOOKS}/{book['id']}").json() for book in books]
        assert Counter(book["isbn"] for book in books) == isbns


def test_a_bulk_and_a_single_change_wait_for_each_other(service: Service) -> None:
    books = [create(service).json() for _ in range(10)]
    operations = [{"op": "update", "id": book["id"], "book": {"title": "Bulk"}} for book in reversed(books)]
    singles = [partial(patch, address=f"{BOOKS}/{book['id']}", year=2000) for book in books]
    answers = at_once(service, [partial(bulk, operations=operations), *singles])
    assert statuses(answers) == {200: 11}
    read = [stored(service, f"{BOOKS}/{book['id']}").json() for book in books]
    assert {(book["title"], book["year"], book["version"]) for book in read} == {("Bulk", 2000, 3)}


@pytest.mark.parametrize("by", ["itself", "bulk"])
def test_a_change_never_brings_a_deleted_book_back(service: Service, by: str) -> None:
    for _ in range(8):
        created = create(service)
        address, pk = created.headers["Location"], created.json()["id"]
        delete = {
            "itself": partial(httpx.Client.delete, url=address),
            "bulk": partial(bulk, operations=[{"op": "delete", "id": pk}]),
        }[by]
        changes = [partial(patch, address=address, year=number) for number in range(4)]
        in_bulk = partial(bulk, operations=[{"op": "update", "id": pk, "book": {"genre": "Bulk"}}])
        deleted, changed_in_bulk, *changed = at_once(service, [delete, in_bulk, *changes])
        assert deleted.is_success
        assert changed_in_bulk.status_code in (200, 422)
        assert statuses(changed).keys() <= {200, 404}
        assert refused(stored(service, address)) == (404, "NOT_FOUND", [])


def test_a_dry_run_holds_nobody_back(service: Service, address: str, created: httpx.Response) -> None:
    operations = [{"op": "update", "id": created.json()["id"], "book": {"title": "Rehearsed"}}]
    rehearsal = partial(httpx.Client.post, url=f"{BULK}?dry_run=true", json={"operations": operations})
    changes = [partial(patch, address=address, year=number) for number in range(6)]
    answers = at_once(service, [*[rehearsal] * 6, *changes])
    assert statuses(answers) == {200: 12}
    read = stored(service, address).json()
    assert (read["title"], read["version"]) == (created.json()["title"], 7)
