"""The admin pages of sources and of received events, as a browser meets them."""

import html
import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from tests.support import sources
from tests.support.admin_pages import dump_database, read_secrets, read_text, submit_action
from tests.support.endpoints import OLD_SECRET
from tests.support.webhooks_admin import INBOX, MOMENT, SOURCES
from webhooks import inbox
from webhooks.models import Received, Source

pytestmark = pytest.mark.usefixtures("db")
INVALID_SECRETS = ["too short", "a\0" * 20, "é" * 30, "s" * 201]


def build_source_form(**changes: Any) -> dict[str, Any]:
    management = {"secrets-TOTAL_FORMS": "0", "secrets-INITIAL_FORMS": "0"}
    return {"name": "branch", "form": "B", "enabled": "on", "secret": "", **management, **changes}


def store_dead_event(source: Source) -> Received:
    received = sources.store_received(source)
    Received.objects.filter(pk=received.pk).update(
        state="dead", next_at=None, attempted=5, claimed=16, error="ValueError: no shelf", finished_at=MOMENT
    )
    return received


def test_a_source_is_added_with_a_secret_that_is_made_or_given(root: Client, caplog: pytest.LogCaptureFixture) -> None:
    given = " a secret of the branch, with spaces "
    with caplog.at_level("DEBUG"):
        made = read_secrets(root.post(f"{SOURCES}add/", build_source_form()))["Secret"]
        response = root.post(f"{SOURCES}add/", build_source_form(name="attic", secret=given), follow=True)
    assert given.strip() not in read_text(response)
    assert given not in caplog.text
    source, other = Source.objects.order_by("pk")
    assert (source.name, source.form, source.enabled) == ("branch", "B", True)
    assert [list(inbox.iter_secrets(row)) for row in (source, other)] == [[made], [given]]
    assert "/webhooks/receive/branch" in read_text(root.get(f"{SOURCES}{source.pk}/change/"))
    pages = [root.get(f"{SOURCES}{row.pk}/{page}/") for row in (source, other) for page in ("change", "history")]
    texts = [dump_database(), *map(read_text, pages)]
    assert [text for text in texts if made in text or given.strip() in text] == []


def test_a_source_has_several_secrets_and_each_can_be_removed(root: Client) -> None:
    branch = sources.create_source()
    generated_secret = read_secrets(submit_action(root, SOURCES, "add_secret", branch))["Secret"]
    [old_secret, new_secret] = branch.secrets.order_by("pk")
    page = f"{SOURCES}{branch.pk}/change/"
    own_secret = "a third of the branch's own"
    management = {"secrets-TOTAL_FORMS": "2", "secrets-INITIAL_FORMS": "2"}
    rows = {"secrets-0-id": old_secret.pk, "secrets-0-DELETE": "on", "secrets-1-id": new_secret.pk}
    root.post(page, build_source_form(secret=own_secret, **management, **rows))
    assert set(inbox.iter_secrets(branch)) == {generated_secret, own_secret}
    history = read_text(root.get(f"{SOURCES}{branch.pk}/history/"))
    assert "Made a new secret." in history
    assert "Deleted secret" in history


def test_the_form_names_the_invalid_field_of_a_source(root: Client) -> None:
    forms = [*({"name": name} for name in ("", "a/b", "a\0b", "n" * 51)), {"form": "D"}]
    secrets = [*({"secret": secret} for secret in INVALID_SECRETS), {"secret": OLD_SECRET, "form": "C"}]
    for form in [*forms, *secrets]:
        response = root.post(f"{SOURCES}add/", build_source_form(**form))
        assert list(response.context["adminform"].form.errors) == [next(iter(form))], form
        assert "secret" not in form or form["secret"] not in html.unescape(read_text(response)), form
    assert not Source.objects.exists()
    root.post(f"{SOURCES}add/", build_source_form(form="B", secret=OLD_SECRET))
    assert Source.objects.exists()


def test_a_source_with_an_old_secret_gets_form_c_with_a_new_one(root: Client) -> None:
    branch = sources.create_source(secrets=(OLD_SECRET,))
    page = f"{SOURCES}{branch.pk}/change/"
    management = {"secrets-TOTAL_FORMS": "1", "secrets-INITIAL_FORMS": "1", "secrets-0-id": branch.secrets.get().pk}
    response = root.post(page, build_source_form(form="C", **management))
    assert list(response.context["adminform"].form.errors) == ["form"]
    root.post(page, build_source_form(form="C", secret=sources.SECRET, **management))
    branch.refresh_from_db()
    assert (branch.form, list(inbox.iter_secrets(branch))) == ("C", [sources.SECRET])
    # One that was made before serves as well.
    Source.objects.update(form="B")
    rows = {f"secrets-{number}-id": secret.pk for number, secret in enumerate(branch.secrets.order_by("pk"))}
    both = {**management, **rows, "secrets-TOTAL_FORMS": "2", "secrets-INITIAL_FORMS": "2"}
    root.post(page, build_source_form(form="C", enabled="", **both))
    branch.refresh_from_db()
    assert (branch.form, branch.enabled) == ("C", False)


def test_a_source_is_not_deleted(root: Client) -> None:
    branch = sources.create_source()
    assert root.post(f"{SOURCES}{branch.pk}/delete/", {"post": "yes"}).status_code == 403
    submit_action(root, SOURCES, "delete_selected", branch)
    assert Source.objects.exists()


def test_a_developer_may_only_read_sources(developer: Client) -> None:
    branch = sources.create_source()
    page = f"{SOURCES}{branch.pk}/change/"
    assert [developer.get(address).status_code for address in (SOURCES, page)] == [200] * 2
    assert developer.post(page, build_source_form(name="mine")).status_code == 403
    submit_action(developer, SOURCES, "add_secret", branch)
    assert (Source.objects.get().name, branch.secrets.count()) == ("branch", 1)


def test_a_developer_does_not_see_the_inbox(developer: Client) -> None:
    received = store_dead_event(sources.create_source())
    row = f"{INBOX}{received.pk}/"
    addresses = [INBOX, f"{row}change/", f"{row}history/", f"{row}delete/"]
    assert [developer.get(address).status_code for address in addresses] == [403] * 4
    assert submit_action(developer, INBOX, "requeue", received).status_code == 403
    assert Received.objects.get().state == "dead"
    for page in ("/admin/", f"{SOURCES}{received.source_id}/change/"):
        text = read_text(developer.get(page))
        assert [word in text for word in (INBOX, received.event_id, received.kind)] == [False] * 3


@pytest.mark.parametrize(("permission", "state"), [("view_received", "dead"), ("change_received", "waiting")])
def test_the_inbox_has_permissions_of_its_own(developer: Client, ada: User, permission: str, state: str) -> None:
    received = store_dead_event(sources.create_source())
    ada.user_permissions.add(Permission.objects.get(codename=permission))
    for address in (INBOX, f"{INBOX}{received.pk}/change/", f"{INBOX}{received.pk}/history/"):
        assert developer.get(address).status_code == 200
    submit_action(developer, INBOX, "requeue", received)
    assert Received.objects.get().state == state


def test_the_page_of_a_received_event_shows_its_body_and_error(root: Client) -> None:
    received = store_dead_event(sources.create_source())
    page = html.unescape(read_text(root.get(f"{INBOX}{received.pk}/change/")))
    body = json.dumps(json.loads(bytes(received.body)), indent=2)
    assert [text in page for text in (body, "ValueError: no shelf", received.event_id)] == [True] * 3


def test_the_page_of_a_received_event_shows_any_body(root: Client) -> None:
    received = store_dead_event(sources.create_source())
    for body in (b"[" * 900 + b"]" * 900, b'{"a": "\\ud800"}', b'{"a": 1e999, "a": NaN}', b"\xff\0"):
        Received.objects.update(body=body)
        assert root.get(f"{INBOX}{received.pk}/change/").status_code == 200


@pytest.mark.usefixtures("transactional_db")
def test_dead_events_can_be_queued_again(root: Client) -> None:
    branch = sources.create_source()
    received, other = store_dead_event(branch), sources.store_received(branch)
    Received.objects.filter(pk=other.pk).update(attempted=2)
    response = submit_action(root, INBOX, "requeue", received, other)
    assert "The event is processed again." in read_text(response)
    assert "Processed again." in read_text(root.get(f"{INBOX}{received.pk}/history/"))
    assert Received.objects.get(pk=other.pk).attempted == 2
    assert Received.objects.values_list("state", "attempted").get(pk=received.pk) == ("waiting", 0)
    while inbox.process_due(lambda: 0.5):
        pass
    assert Received.objects.values_list("state", "error").get(pk=received.pk) == ("done", "")
