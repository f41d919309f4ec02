"""The desk for endpoints, deliveries, sources and the inbox, as a browser meets it."""

import html
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.support import sources
from tests.support.admin_pages import ODD_IDS, ODD_QUERIES, ODD_SELECTIONS, acted, everything_stored, listed, text, told
from tests.support.endpoints import SECRET, claim, endpoint, event, listener
from webhooks import endpoints, inbox
from webhooks.attempts import Outcome, record_outcomes
from webhooks.encryption import decrypt
from webhooks.models import Attempt, Delivery, Endpoint, Event, Received, Source

pytestmark = pytest.mark.usefixtures("db")
ENDPOINTS = "/admin/webhooks/endpoint/"
DELIVERIES = "/admin/webhooks/delivery/"
SOURCES = "/admin/webhooks/source/"
INBOX = "/admin/webhooks/received/"
DESKS = [ENDPOINTS, DELIVERIES, SOURCES, INBOX]
MOMENT = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
UNFIT_SECRETS = ["too short", "a\0" * 20, "é" * 30, "s" * 201]


def endpoint_form(**changed: Any) -> dict[str, Any]:
    fit = {
        "url": "https://shop.example/hook",
        "kinds": ["book.created", "book.deleted"],
        "form": "B",
        "description": "The shop",
        "in_flight_limit": "20",
    }
    return {**fit, **changed}


def source_form(**changed: Any) -> dict[str, Any]:
    management = {"secrets-TOTAL_FORMS": "0", "secrets-INITIAL_FORMS": "0"}
    return {"name": "branch", "form": "B", "enabled": "on", "secret": "", **management, **changed}


def replay_form(**changed: Any) -> dict[str, Any]:
    yesterday = timezone.now() - timedelta(days=1)
    start = {"after_0": f"{yesterday:%Y-%m-%d}", "after_1": "00:00", "before_0": "", "before_1": ""}
    return {"kinds": ["*"], **start, **changed}


def attempted(status: int | None = 200, **members: Any) -> None:
    """As a worker does with all that is due."""
    claimed = claim(100)
    record_outcomes([Outcome(one, MOMENT, 12, status, **members) for one in claimed], lambda: 0.5)


def dead(source: Source) -> Received:
    received = sources.received(source)
    Received.objects.filter(pk=received.pk).update(
        state="dead", next_at=None, attempted=5, claimed=16, error="ValueError: no shelf", finished_at=MOMENT
    )
    return received


def secrets_of(of: Endpoint) -> dict[str, str]:
    return {secret.state: decrypt(secret.sealed) for secret in of.secrets.all()}


# Endpoints


def test_a_developer_adds_an_endpoint(developer: Client, ada: User) -> None:
    shown = told(developer.post(f"{ENDPOINTS}add/", endpoint_form()))
    made = Endpoint.objects.get()
    assert (made.url, made.kinds, made.form, made.description, made.in_flight_limit, made.owner, made.state) == (
        "https://shop.example/hook",
        "book.created book.deleted",
        "B",
        "The shop",
        20,
        ada,
        "active",
    )
    assert secrets_of(made) == {"active": shown["Secret"]}


def test_all_kinds_are_one_choice(developer: Client) -> None:
    developer.post(f"{ENDPOINTS}add/", endpoint_form(kinds=["book.created", "*"]))
    assert Endpoint.objects.get().kinds == "*"


@pytest.mark.parametrize("how", ["add", "rotate"])
def test_a_secret_is_shown_once(developer: Client, ada: User, caplog: pytest.LogCaptureFixture, how: str) -> None:
    with caplog.at_level("DEBUG"):
        if how == "add":
            [secret] = told(developer.post(f"{ENDPOINTS}add/", endpoint_form())).values()
        else:
            [secret] = told(acted(developer, ENDPOINTS, "rotate", endpoint(ada))).values()
    page = f"{ENDPOINTS}{Endpoint.objects.get().pk}/"
    for address in [ENDPOINTS, f"{page}change/", f"{page}history/", f"{page}delete/", f"{page}replay/", "/admin/"]:
        answer = developer.get(address)
        assert answer.status_code == 200
        assert secret not in text(answer)
    assert secret not in everything_stored()
    assert secret not in str(dict(developer.session))
    assert secret not in caplog.text


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("url", ""),
        ("url", "http://shop.example/"),
        ("url", "https://127.0.0.1/"),
        ("url", "https://169.254.169.254/"),
        ("url", "https://shop.example/\0"),
        ("url", "https://shop.example/" + "a" * 2000),
        ("kinds", []),
        ("kinds", ["test.ping"]),
        ("kinds", ["\0"]),
        ("form", "C"),
        ("description", "d" * 201),
        ("description", "a\0b"),
        ("in_flight_limit", "0"),
        ("in_flight_limit", "1001"),
        ("in_flight_limit", "9" * 5000),
    ],
)
def test_an_unfit_endpoint_is_explained(developer: Client, member: str, value: Any) -> None:
    answer = developer.post(f"{ENDPOINTS}add/", endpoint_form(**{member: value}))
    assert list(answer.context["adminform"].form.errors) == [member]
    assert not Endpoint.objects.exists()


def test_a_developer_changes_an_endpoint(developer: Client, ada: User) -> None:
    own = endpoint(ada, state="disabled", reason="It was.")
    page = f"{ENDPOINTS}{own.pk}/change/"
    assert developer.get(page).context["adminform"].form["kinds"].value() == ["*"]
    developer.post(page, endpoint_form(owner="1", state="active", reason="x"))
    changed = Endpoint.objects.get()
    assert (changed.url, changed.kinds, changed.in_flight_limit) == (
        "https://shop.example/hook",
        "book.created book.deleted",
        20,
    )
    assert (changed.owner, changed.state, changed.reason) == (ada, "disabled", "It was.")
    assert secrets_of(own) == {"active": SECRET}
    assert "Changed URL, Events" in text(developer.get(f"{ENDPOINTS}{own.pk}/history/"))


def test_a_superuser_gives_an_endpoint_to_a_developer(root: Client, ada: User) -> None:
    root.post(f"{ENDPOINTS}add/", endpoint_form(owner=ada.pk))
    made = Endpoint.objects.get()
    assert made.owner == ada
    root.post(f"{ENDPOINTS}{made.pk}/change/", endpoint_form(owner=listener().pk))
    assert Endpoint.objects.get().owner == User.objects.get(username="listener")


@pytest.mark.parametrize("owner", ["", "0", "abc", "\0", "9" * 23, "9" * 5000, "-1"])
def test_an_owner_who_is_none_is_explained(root: Client, owner: str) -> None:
    answer = root.post(f"{ENDPOINTS}add/", endpoint_form(owner=owner))
    assert list(answer.context["adminform"].form.errors) == ["owner"]


def test_too_many_endpoints_are_explained(developer: Client, ada: User) -> None:
    Endpoint.objects.bulk_create(
        Endpoint(owner=ada, created_at=MOMENT) for _ in range(endpoints.MAX_ENDPOINTS_PER_USER)
    )
    answer = developer.post(f"{ENDPOINTS}add/", endpoint_form(), follow=True)
    assert "No endpoint was made: 100 are there already; delete one first." in text(answer)
    assert Endpoint.objects.count() == endpoints.MAX_ENDPOINTS_PER_USER


@pytest.mark.parametrize("how", ["page", "action"])
def test_a_deleted_endpoint_keeps_its_deliveries_and_is_not_listed(developer: Client, ada: User, how: str) -> None:
    own = endpoint(ada)
    event()
    address = f"{ENDPOINTS}{own.pk}/delete/" if how == "page" else ENDPOINTS
    form = {"action": "delete_selected", "_selected_action": str(own.pk)} if how == "action" else {}
    page = developer.post(address, form) if form else developer.get(address)
    assert "is sent nothing more, not even what waits" in text(page)
    developer.post(address, {**form, "post": "yes"})
    assert Endpoint.objects.get().state == "deleted"
    assert Delivery.objects.count() == 1
    assert listed(developer.get(ENDPOINTS)) == []
    assert developer.get(f"{ENDPOINTS}{own.pk}/change/").headers["Location"] == "/admin/"
    assert "(deleted)" in text(developer.get(f"{DELIVERIES}{Delivery.objects.get().pk}/change/"))


def test_the_list_tells_how_endpoints_fare(developer: Client, ada: User) -> None:
    well, ill = endpoint(ada), endpoint(ada, url="https://ill.example/", kinds="book.updated")
    idle = endpoint(ada, state="disabled")
    event(1)
    attempted(204)
    event(2)
    Delivery.objects.create(event=Event.objects.latest("pk"), endpoint=ill)
    attempted(None, error="Nobody answers at the address.")
    shown = {row.pk: row for row in listed(developer.get(ENDPOINTS))}
    told_of = {pk: (row.delivered, row.failing, row.last_answer_at is not None) for pk, row in shown.items()}
    assert told_of == {well.pk: (1, 1, True), ill.pk: (0, 1, True), idle.pk: (0, 0, False)}
    assert shown[ill.pk].last_answer == "Nobody answers at the address."
    assert "2026-01-31 09:30:00 UTC: Nobody answers at the address." in text(developer.get(ENDPOINTS))


def test_endpoints_are_found(root: Client, ada: User) -> None:
    adas, other = endpoint(ada, description="Bindery"), endpoint(url="https://other.example/", state="disabled")
    found = {query: listed(root.get(f"{ENDPOINTS}?{query}")) for query in ("q=bind", "q=ada", "q=other.example")}
    assert found == {"q=bind": [adas], "q=ada": [adas], "q=other.example": [other]}
    assert listed(root.get(f"{ENDPOINTS}?state__exact=disabled")) == [other]


def test_developers_see_their_own_endpoints_and_deliveries(developer: Client, ada: User) -> None:
    own, theirs = endpoint(ada), endpoint(url="https://theirs.example/")
    event()
    assert listed(developer.get(ENDPOINTS)) == [own]
    assert [row.endpoint_id for row in listed(developer.get(DELIVERIES))] == [own.pk]
    assert listed(developer.get(f"{DELIVERIES}?endpoint__id__exact={theirs.pk}")) == []
    assert theirs.url not in text(developer.get(DELIVERIES))


def test_a_superuser_sees_all(root: Client, ada: User) -> None:
    endpoint(ada)
    endpoint()
    event()
    assert [len(listed(root.get(desk))) for desk in (ENDPOINTS, DELIVERIES)] == [2, 2]


@pytest.mark.parametrize("page", ["change", "delete", "history", "replay"])
def test_developers_do_not_reach_the_endpoints_of_others(developer: Client, page: str) -> None:
    theirs = endpoint()
    event()
    for answer in (
        developer.get(f"{ENDPOINTS}{theirs.pk}/{page}/"),
        developer.post(f"{ENDPOINTS}{theirs.pk}/{page}/", {**endpoint_form(), **replay_form(), "post": "yes"}),
    ):
        assert theirs.url not in text(answer)
        assert answer.status_code in (302, 404)
    assert Endpoint.objects.values_list("url", "state").get() == (theirs.url, "active")
    assert Delivery.objects.count() == 1


@pytest.mark.parametrize("action", ["ping", "disable", "rotate", "promote", "delete_selected"])
def test_developers_do_nothing_to_the_endpoints_of_others(developer: Client, action: str) -> None:
    theirs = endpoint()
    acted(developer, ENDPOINTS, action, theirs)
    assert Endpoint.objects.get().state == "active"
    assert secrets_of(theirs) == {"active": SECRET}
    assert not Delivery.objects.exists()


def test_a_page_has_its_buttons(developer: Client, ada: User) -> None:
    page = text(developer.get(f"{ENDPOINTS}{endpoint(ada).pk}/change/"))
    buttons = [name for name in ("ping", "disable", "enable", "rotate", "promote") if f'value="{name}"' in page]
    assert buttons == ["ping", "disable", "enable", "rotate", "promote"]
    assert 'value="delete_selected"' not in page


def test_a_ping_leads_to_its_delivery(developer: Client, ada: User) -> None:
    own = endpoint(ada)
    answer = acted(developer, ENDPOINTS, "ping", own)
    made = Delivery.objects.select_related("event").get()
    assert (made.endpoint, made.event.kind) == (own, "test.ping")
    assert answer.redirect_chain == [(f"{DELIVERIES}{made.pk}/change/", 302)]
    assert "Pinged." in text(developer.get(f"{ENDPOINTS}{own.pk}/history/"))


def test_a_disabled_endpoint_is_not_pinged(developer: Client, ada: User) -> None:
    answer = acted(developer, ENDPOINTS, "ping", endpoint(ada, state="disabled"))
    assert "Pings on their way: 0, to active endpoints." in text(answer)
    assert not Delivery.objects.exists()


def test_endpoints_are_disabled_and_enabled(developer: Client, ada: User) -> None:
    first, second = endpoint(ada), endpoint(ada, state="disabled", reason="10 in a row", dead_in_a_row=10)
    acted(developer, ENDPOINTS, "disable", first, second, query="state__exact=active")
    assert Endpoint.objects.get(pk=first.pk).state == "disabled"
    acted(developer, ENDPOINTS, "enable", first, second)
    assert set(Endpoint.objects.values_list("state", "reason", "dead_in_a_row")) == {("active", "", 0)}
    history = text(developer.get(f"{ENDPOINTS}{first.pk}/history/"))
    assert [words in history for words in ("Made disabled.", "Made active.")] == [True, True]


def test_a_secret_is_changed_in_two_steps(developer: Client, ada: User) -> None:
    own = endpoint(ada)
    pending = told(acted(developer, ENDPOINTS, "rotate", own))["Pending secret"]
    assert secrets_of(own) == {"active": SECRET, "pending": pending}
    assert "pending since" in text(developer.get(f"{ENDPOINTS}{own.pk}/change/"))
    acted(developer, ENDPOINTS, "promote", own)
    assert secrets_of(own) == {"active": pending}
    history = text(developer.get(f"{ENDPOINTS}{own.pk}/history/"))
    assert "Made a new secret, which is pending." in history
    assert "Promoted the pending secret." in history


def test_nothing_pending_is_not_promoted(developer: Client, ada: User) -> None:
    own = endpoint(ada)
    assert "no secret is pending" in text(acted(developer, ENDPOINTS, "promote", own))
    assert secrets_of(own) == {"active": SECRET}


@pytest.mark.parametrize("action", ["rotate", "promote"])
def test_secrets_are_changed_one_at_a_time(developer: Client, ada: User, action: str) -> None:
    answer = acted(developer, ENDPOINTS, action, endpoint(ada), endpoint(ada))
    assert "Nothing was changed: select one." in text(answer)


def test_what_was_missed_is_replayed(developer: Client, ada: User) -> None:
    event()
    own = endpoint(ada)
    page = f"{ENDPOINTS}{own.pk}/replay/"
    assert developer.get(page).status_code == 200
    assert "Events on their way again: 1." in text(developer.post(page, replay_form(), follow=True))
    assert Delivery.objects.get().endpoint == own
    assert "Replayed events: 1." in text(developer.get(f"{ENDPOINTS}{own.pk}/history/"))
    other = developer.post(page, replay_form(kinds=["book.deleted"]), follow=True)
    assert "Events on their way again: 0." in text(other)


def test_nothing_is_replayed_to_a_disabled_endpoint(developer: Client, ada: User) -> None:
    event()
    page = f"{ENDPOINTS}{endpoint(ada, state='disabled').pk}/replay/"
    assert "the endpoint is disabled" in text(developer.post(page, replay_form(), follow=True))
    assert not Delivery.objects.exists()


@pytest.mark.parametrize(
    "changed",
    [
        {"kinds": []},
        {"kinds": ["\0"]},
        {"after_0": ""},
        {"after_0": "\0", "after_1": "9" * 5000},
        {"after_0": "0000-00-00"},
        {"before_0": "0001-01-01", "before_1": "00:00"},
        {"before_0": "0001-01-01T00:00+23:59", "before_1": "00:00"},
    ],
)
def test_an_unfit_replay_is_explained(developer: Client, ada: User, changed: dict[str, Any]) -> None:
    answer = developer.post(f"{ENDPOINTS}{endpoint(ada).pk}/replay/", replay_form(**changed))
    assert answer.context["form"].errors


@pytest.mark.parametrize(("after", "before"), [("0001-01-01", "9999-12-31"), ("9999-12-30", "9999-12-31")])
def test_the_ends_of_time_can_be_asked_for(developer: Client, ada: User, after: str, before: str) -> None:
    page = f"{ENDPOINTS}{endpoint(ada).pk}/replay/"
    span = {"after_0": after, "before_0": before, "before_1": "23:59:59"}
    assert developer.post(page, replay_form(**span)).status_code == 302


@pytest.mark.parametrize("pk", ODD_IDS)
def test_what_is_not_there_is_not_replayed(root: Client, pk: str) -> None:
    assert root.get(f"{ENDPOINTS}{pk}/replay/").headers["Location"] == ENDPOINTS


# Deliveries


def test_the_page_of_a_delivery_tells_all(developer: Client, ada: User) -> None:
    own = endpoint(ada)
    event()
    attempted(500, answer=b"<b>Caf\xc3\xa9\0\xff")
    made = Delivery.objects.select_related("event").get()
    page = html.unescape(text(developer.get(f"{DELIVERIES}{made.pk}/change/")))
    body = json.dumps(json.loads(bytes(made.event.body)), indent=2)
    for told_of in (
        body,
        str(made.event.uuid),
        own.url,
        "<pre><b>Café\ufffd\ufffd</pre>",
        "X-Webhook-Event: book.created\nX-Webhook-Timestamp: 1769851800",
        "500",
    ):
        assert told_of in page
    assert "<b>Café" not in text(developer.get(f"{DELIVERIES}{made.pk}/change/"))
    assert SECRET not in page


def test_every_attempt_is_told(developer: Client, ada: User) -> None:
    endpoint(ada)
    event()
    [made] = Delivery.objects.all()
    Attempt.objects.bulk_create(
        Attempt(delivery=made, started_at=MOMENT, milliseconds=n, error=f"Error {n}.", answer=b"") for n in range(5)
    )
    page = text(developer.get(f"{DELIVERIES}{made.pk}/change/"))
    assert [f"Error {n}." in page for n in range(5)] == [True] * 5


def test_deliveries_are_found_by_state_and_endpoint(developer: Client, ada: User) -> None:
    first, second = endpoint(ada), endpoint(ada)
    event()
    [of_first, of_second] = [Delivery.objects.get(endpoint=one) for one in (first, second)]
    Delivery.objects.filter(pk=of_first.pk).update(state="dead", next_at=None)
    assert listed(developer.get(f"{DELIVERIES}?state__exact=dead")) == [of_first]
    assert listed(developer.get(f"{DELIVERIES}?endpoint__id__exact={second.pk}")) == [of_second]


def test_the_only_endpoint_filters_as_well(root: Client) -> None:
    one = endpoint()
    event()
    assert len(listed(root.get(f"{DELIVERIES}?endpoint__id__exact={one.pk}"))) == 1
    assert listed(root.get(f"{DELIVERIES}?endpoint__id__exact={one.pk + 1}")) == []


def test_deliveries_are_sent_again(developer: Client, ada: User) -> None:
    endpoint(ada)
    event()
    attempted()
    [made] = Delivery.objects.all()
    answer = acted(developer, DELIVERIES, "redeliver", made)
    again = Delivery.objects.latest("pk")
    assert (again.event_id, again.endpoint_id, again.replay, again.state) == (
        made.event_id,
        made.endpoint_id,
        1,
        "waiting",
    )
    assert answer.redirect_chain == [(f"{DELIVERIES}{again.pk}/change/", 302)]
    assert "Sent again." in text(developer.get(f"{DELIVERIES}{made.pk}/history/"))


def test_several_are_sent_again(developer: Client, ada: User) -> None:
    endpoint(ada)
    event(1)
    event(2)
    answer = acted(developer, DELIVERIES, "redeliver", *Delivery.objects.all(), query="state__exact=waiting")
    assert "Deliveries sent again: 2, to active endpoints." in text(answer)
    assert sorted(Delivery.objects.values_list("replay", flat=True)) == [0, 0, 1, 1]


@pytest.mark.parametrize("state", ["disabled", "deleted"])
def test_nothing_is_sent_again_to_an_endpoint_that_takes_nothing(developer: Client, ada: User, state: str) -> None:
    own = endpoint(ada)
    event()
    Endpoint.objects.filter(pk=own.pk).update(state=state)
    assert "Deliveries sent again: 0" in text(acted(developer, DELIVERIES, "redeliver", *Delivery.objects.all()))
    assert Delivery.objects.count() == 1


def test_developers_neither_see_nor_send_the_deliveries_of_others(developer: Client) -> None:
    endpoint()
    event()
    [theirs] = Delivery.objects.all()
    acted(developer, DELIVERIES, "redeliver", theirs)
    assert Delivery.objects.count() == 1
    assert developer.get(f"{DELIVERIES}{theirs.pk}/change/").headers["Location"] == "/admin/"


def test_too_many_are_not_sent_again_at_once(root: Client) -> None:
    one = endpoint()
    event()
    [made] = Delivery.objects.all()
    Delivery.objects.bulk_create(
        Delivery(event_id=made.event_id, endpoint=one, replay=number) for number in range(1, 1_001)
    )
    form = {"action": "redeliver", "_selected_action": str(made.pk), "select_across": "1", "index": "0"}
    answer: Any = root.post(DELIVERIES, form, follow=True)
    assert "Nothing was changed: select 1,000 at most." in text(answer)
    assert Delivery.objects.count() == 1_001


@pytest.mark.parametrize("desk", [DELIVERIES, INBOX])
def test_what_the_service_wrote_is_not_edited(root: Client, desk: str) -> None:
    endpoint()
    event()
    sources.received(sources.source())
    [row] = Delivery.objects.all() if desk == DELIVERIES else Received.objects.all()
    pages = ["add/", f"{row.pk}/change/", f"{row.pk}/delete/"]
    assert [root.post(f"{desk}{page}", {"state": "dead", "post": "yes"}).status_code for page in pages] == [403] * 3
    acted(root, desk, "delete_selected", row)
    assert type(row).objects.get().state == "waiting"


# Sources and the inbox


def test_a_source_is_added_with_a_secret_of_ours(root: Client) -> None:
    secret = told(root.post(f"{SOURCES}add/", source_form(mirrors="on")))["Secret"]
    made = Source.objects.get()
    assert (made.name, made.form, made.enabled, made.mirrors) == ("branch", "B", True, True)
    assert list(inbox.iter_secrets(made)) == [secret]
    page = root.get(f"{SOURCES}{made.pk}/change/")
    assert "/webhooks/receive/branch" in text(page)
    assert secret not in text(page)
    assert secret not in everything_stored()


def test_a_source_is_added_with_a_secret_of_its_own(root: Client, caplog: pytest.LogCaptureFixture) -> None:
    secret = " a secret of the branch, with spaces "
    with caplog.at_level("DEBUG"):
        answer = root.post(f"{SOURCES}add/", source_form(secret=secret), follow=True)
    made = Source.objects.get()
    assert list(inbox.iter_secrets(made)) == [secret]
    for page in (answer, root.get(f"{SOURCES}{made.pk}/change/"), root.get(f"{SOURCES}{made.pk}/history/")):
        assert secret.strip() not in text(page)
    assert secret not in everything_stored()
    assert secret not in caplog.text


def test_a_source_has_several_secrets_and_each_can_be_removed(root: Client) -> None:
    branch = sources.source()
    made = told(acted(root, SOURCES, "add_secret", branch))["Secret"]
    [old, new] = branch.secrets.order_by("pk")
    page = f"{SOURCES}{branch.pk}/change/"
    typed = "a third of the branch's own"
    management = {"secrets-TOTAL_FORMS": "2", "secrets-INITIAL_FORMS": "2"}
    rows = {"secrets-0-id": old.pk, "secrets-0-DELETE": "on", "secrets-1-id": new.pk}
    root.post(page, source_form(secret=typed, **management, **rows))
    assert set(inbox.iter_secrets(branch)) == {made, typed}
    history = text(root.get(f"{SOURCES}{branch.pk}/history/"))
    assert "Made a new secret." in history
    assert "Deleted source secret" in history


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("name", ""),
        ("name", "a/b"),
        ("name", "a\0b"),
        ("name", "n" * 51),
        ("form", "C"),
        *(("secret", secret) for secret in UNFIT_SECRETS),
    ],
)
def test_an_unfit_source_is_explained(root: Client, member: str, value: str) -> None:
    answer = root.post(f"{SOURCES}add/", source_form(**{member: value}))
    assert list(answer.context["adminform"].form.errors) == [member]
    assert not Source.objects.exists()


@pytest.mark.parametrize("secret", UNFIT_SECRETS)
def test_an_unfit_secret_is_not_shown_again(root: Client, secret: str) -> None:
    assert secret not in html.unescape(text(root.post(f"{SOURCES}add/", source_form(secret=secret))))


def test_a_source_is_not_deleted(root: Client) -> None:
    branch = sources.source()
    assert root.post(f"{SOURCES}{branch.pk}/delete/", {"post": "yes"}).status_code == 403
    acted(root, SOURCES, "delete_selected", branch)
    assert Source.objects.exists()


def test_a_developer_reads_sources_and_the_inbox_alone(developer: Client) -> None:
    branch = sources.source()
    received = dead(branch)
    pages = [f"{SOURCES}{branch.pk}/change/", f"{INBOX}{received.pk}/change/"]
    assert [developer.get(page).status_code for page in [SOURCES, INBOX, *pages]] == [200] * 4
    assert developer.post(pages[0], source_form(name="mine")).status_code == 403
    acted(developer, INBOX, "requeue", received)
    acted(developer, SOURCES, "add_secret", branch)
    assert Received.objects.get().state == "dead"
    assert (Source.objects.get().name, branch.secrets.count()) == ("branch", 1)


def test_the_page_of_what_was_received_tells_all(root: Client) -> None:
    received = dead(sources.source())
    page = html.unescape(text(root.get(f"{INBOX}{received.pk}/change/")))
    body = json.dumps(json.loads(bytes(received.body)), indent=2)
    assert [words in page for words in (body, "ValueError: no shelf", received.event_id)] == [True] * 3


@pytest.mark.parametrize("body", [b"[" * 900 + b"]" * 900, b'{"a": "\\ud800"}', b'{"a": 1e999, "a": NaN}', b"\xff\0"])
def test_whatever_was_received_can_be_read(root: Client, body: bytes) -> None:
    received = dead(sources.source())
    Received.objects.update(body=body)
    assert root.get(f"{INBOX}{received.pk}/change/").status_code == 200


def test_what_is_dead_is_worked_off_again(root: Client) -> None:
    branch = sources.source()
    received, other = dead(branch), sources.received(branch)
    Received.objects.filter(pk=other.pk).update(attempted=2)
    answer = acted(root, INBOX, "requeue", received, other)
    assert "Dead events to be worked off again: 1." in text(answer)
    assert "Worked off again." in text(root.get(f"{INBOX}{received.pk}/history/"))
    assert Received.objects.get(pk=other.pk).attempted == 2
    assert (Received.objects.get(pk=received.pk).state, Received.objects.get(pk=received.pk).attempted) == (
        "waiting",
        0,
    )


@pytest.mark.usefixtures("transactional_db")
def test_what_is_worked_off_again_is_done_after_all(root: Client) -> None:
    received = dead(sources.source())
    acted(root, INBOX, "requeue", received)
    inbox.process_due(10, lambda: 0.5)
    assert Received.objects.values_list("state", "error").get() == ("done", "")


# All of them


def test_staff_outside_the_group_sees_none_of_it(client: Client) -> None:
    client.force_login(User.objects.create_user("visitor", is_staff=True))
    one = endpoint()
    assert [client.get(desk).status_code for desk in [*DESKS, f"{ENDPOINTS}{one.pk}/replay/"]] == [403] * 5


def test_what_developers_may_do() -> None:
    ours = Permission.objects.filter(content_type__app_label="webhooks")
    assert set(ours.filter(group__name="Developers").values_list("codename", flat=True)) == {
        *(f"{action}_endpoint" for action in ("add", "change", "delete", "view")),
        *(f"{action}_delivery" for action in ("change", "view")),
        *(f"view_{model}" for model in ("attempt", "event", "source", "received")),
    }


def test_who_may_only_look_has_no_buttons(client: Client) -> None:
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(*Permission.objects.filter(codename__in=["view_endpoint", "view_delivery"]))
    client.force_login(viewer)
    own = endpoint(viewer)
    event()
    pages = [f"{ENDPOINTS}{own.pk}/change/", f"{DELIVERIES}{Delivery.objects.get().pk}/change/"]
    for page in pages:
        answer: Any = client.get(page)
        assert answer.status_code == 200
        assert 'name="action"' not in text(answer)
        assert "Replay</a>" not in text(answer)
    acted(client, ENDPOINTS, "ping", own)
    assert Delivery.objects.count() == 1
    assert client.post(f"{ENDPOINTS}{own.pk}/replay/", replay_form()).status_code == 403


@pytest.mark.parametrize("desk", DESKS)
@pytest.mark.parametrize(
    "query",
    [
        *ODD_QUERIES,
        "state__exact=%00",
        "state__exact=bogus",
        "endpoint__id__exact=%00",
        "endpoint__id__exact=abc",
        "endpoint__id__exact=" + "9" * 23,
        "endpoint__id__exact=" + "9" * 5000,
        "source__id__exact=" + "9" * 23,
        "enabled__exact=maybe",
        "sealed__startswith=g",
        "secrets__sealed__startswith=g",
        "endpoint__secrets__sealed__regex=(",
        "owner__password__startswith=p",
    ],
)
def test_no_address_fails(root: Client, desk: str, query: str) -> None:
    answer: Any = root.get(f"{desk}?{query}", follow=True)
    assert answer.status_code in (200, 400)


@pytest.mark.parametrize("desk", [ENDPOINTS, SOURCES])
def test_a_form_is_not_filled_from_its_address(root: Client, desk: str) -> None:
    assert root.get(f"{desk}add/?owner=%00&kinds=%00&url=%00&secret=x&in_flight_limit={'9' * 5000}").status_code == 200


@pytest.mark.parametrize(
    ("desk", "action"),
    [
        *((ENDPOINTS, name) for name in ("ping", "disable", "enable", "rotate", "promote", "delete_selected")),
        (DELIVERIES, "redeliver"),
        (SOURCES, "add_secret"),
        (INBOX, "requeue"),
    ],
)
@pytest.mark.parametrize("pk", ODD_SELECTIONS)
def test_a_selection_of_nothing_changes_nothing(root: Client, desk: str, action: str, pk: str) -> None:
    answer: Any = root.post(desk, {"action": action, "_selected_action": pk}, follow=True)
    assert "Nothing was changed: what was selected does not exist." in text(answer)


@pytest.mark.parametrize("desk", DESKS)
@pytest.mark.parametrize("pk", ODD_IDS)
def test_a_page_of_nothing_is_not_there(root: Client, desk: str, pk: str) -> None:
    assert root.get(f"{desk}{pk}/change/").headers["Location"] == "/admin/"


@pytest.mark.parametrize("desk", DESKS)
def test_a_longer_list_takes_no_more_queries(root: Client, desk: str) -> None:
    counts = []
    for number in range(2):
        endpoint(listener(f"listener-{number}"))
        event(number)
        attempted()
        sources.received(sources.source(f"branch-{number}"))
        with CaptureQueriesContext(connection) as queries:
            root.get(desk)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_history_holds_words_alone(root: Client, ada: User) -> None:
    root.post(f"{ENDPOINTS}add/", endpoint_form(owner=ada.pk))
    acted(root, ENDPOINTS, "ping", Endpoint.objects.get())
    assert [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")] == ["Added.", "Pinged."]
