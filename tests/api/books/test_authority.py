"""An operation goes on only while who began it may do so: the person, and the API key or app that it came by."""

from collections.abc import Callable
from datetime import timedelta

import httpx
import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from books.models import Book, Operation
from books.operations.edits import Edit
from oauth.models import CONSENT_LIFETIME, APIKey, Authorization
from oauth.tokens import revocations
from tests.support.books_admin import create_book
from tests.support.credentials import create_app_header, expire_keys, revoke_keys
from tests.support.oauth_flows import create_key_header, create_librarian, deactivate_without_signal
from tests.support.operations import begin_edit, claim_runner, create_head_librarian, run_operations

OPERATIONS = "/api/v2/operations"
LEND_ALL = {"kind": "edit", "filter": {}, "set": {"available": False}}
PERSON_REASON = "Who began this may not do so any more."
CREDENTIAL_REASON = "The API key or app that began this may not do so any more."

End = Callable[[User], object]


def revoke_authorization(user: User) -> None:
    revocations.revoke_authorizations(Authorization.objects.filter(user=user), timezone.now())


def expire_authorization(user: User) -> None:
    Authorization.objects.filter(user=user).update(created_at=timezone.now() - CONSENT_LIFETIME - timedelta(seconds=1))


def narrow_key(user: User) -> None:
    APIKey.objects.filter(owner=user).update(scopes="read")


def take_rights(user: User) -> None:
    user.groups.clear()


def take_admin(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=False)


CASES = [
    (create_key_header, revoke_keys, CREDENTIAL_REASON),
    (create_key_header, expire_keys, CREDENTIAL_REASON),
    (create_key_header, narrow_key, CREDENTIAL_REASON),
    (create_app_header, revoke_authorization, CREDENTIAL_REASON),
    (create_app_header, expire_authorization, CREDENTIAL_REASON),
    (create_key_header, deactivate_without_signal, PERSON_REASON),
    (create_app_header, take_rights, PERSON_REASON),
]


@pytest.fixture(autouse=True)
def batches_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("books.operations.worker.BATCH_SIZES", {"sqlite": 1, "postgresql": 1})


@pytest.fixture
def ada(db: None) -> User:
    create_book(), create_book(), create_book()
    # Grace's credentials are valid all the time: hers are not asked.
    grace = create_librarian("grace")
    create_key_header(grace), create_app_header(grace)
    return create_librarian("ada", "Head librarians")


def begin(api: httpx.Client, header: dict[str, str], address: str = OPERATIONS) -> Operation:
    response = api.post(address, json=LEND_ALL, headers=header)
    assert response.status_code == 202
    return Operation.objects.get(pk=response.json()["id"])


def count_lent() -> int:
    return Book.objects.filter(available=False).count()


def test_an_operation_of_a_deactivated_person_does_not_begin(api: httpx.Client, ada: User) -> None:
    operation = begin(api, create_key_header(ada))
    deactivate_without_signal(ada)
    run_operations(operation)
    assert (operation.state, operation.error, count_lent()) == ("failed", PERSON_REASON, 0)


@pytest.mark.parametrize(("create_header", "end", "reason"), CASES)
def test_an_operation_stops_when_its_person_or_its_credential_ends(
    api: httpx.Client, ada: User, create_header: Callable[[User], dict[str, str]], end: End, reason: str
) -> None:
    operation = begin(api, create_header(ada))
    runner = claim_runner()
    assert runner.advance()
    assert runner.advance()
    end(ada)
    assert not runner.advance()
    operation.refresh_from_db()
    assert (operation.state, operation.error) == ("failed", reason)
    assert (operation.changed, count_lent()) == (1, 1)


@pytest.mark.parametrize("create_header", [create_key_header, create_app_header])
def test_an_operation_is_done_whatever_ends_of_other_people(
    api: httpx.Client, ada: User, create_header: Callable[[User], dict[str, str]]
) -> None:
    operation = begin(api, create_header(ada))
    others = User.objects.get(username="grace")
    revoke_keys(others)
    revoke_authorization(others)
    run_operations(operation)
    assert (operation.state, count_lent()) == ("done", 3)


def test_an_undo_asks_for_the_credential_that_it_came_by(api: httpx.Client, ada: User) -> None:
    operation = begin(api, create_app_header(ada))
    run_operations(operation)
    undo = begin(api, create_key_header(ada), f"{OPERATIONS}/{operation.pk}/undo")
    revoke_authorization(ada)
    run_operations(undo)
    assert (undo.state, count_lent()) == ("done", 0)
    again = begin(api, create_key_header(ada), f"{OPERATIONS}/{undo.pk}/undo")
    revoke_keys(ada)
    run_operations(again)
    assert (again.state, again.error, count_lent()) == ("failed", CREDENTIAL_REASON, 0)


def test_an_operation_of_the_admin_stops_when_its_person_may_not_use_the_admin(ada: User) -> None:
    operation = begin_edit(create_head_librarian(), Edit({"available": False}))
    runner = claim_runner()
    assert runner.advance()
    assert runner.advance()
    take_admin(User.objects.get(username="head"))
    assert not runner.advance()
    operation.refresh_from_db()
    assert (operation.state, operation.error, count_lent()) == ("failed", PERSON_REASON, 1)


def test_an_operation_of_a_program_needs_no_access_to_the_admin(api: httpx.Client, ada: User) -> None:
    operation = begin(api, create_key_header(ada))
    take_admin(ada)
    run_operations(operation)
    assert operation.state == "done"
