"""The admin pages of endpoints, as a browser meets them."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from tests.support.admin_pages import (
    dump_database,
    list_badges,
    list_rows,
    read_inputs,
    read_secrets,
    read_text,
    read_words,
    submit_action,
)
from tests.support.endpoints import OLD_SECRET, SECRET, create_endpoint, create_owner, publish_event
from tests.support.webhooks_admin import (
    DELIVERIES,
    ENDPOINTS,
    MOMENT,
    attempt_deliveries,
    build_endpoint_form,
    build_replay_form,
    confirm_replay,
)
from webhooks import endpoints
from webhooks.encryption import decrypt_secret, encrypt_secret
from webhooks.models import Delivery, Endpoint, Event

pytestmark = pytest.mark.usefixtures("db")


def decrypt_secrets(endpoint: Endpoint) -> dict[str, str]:
    return {secret.state: decrypt_secret(secret.sealed) for secret in endpoint.secrets.all()}


def test_a_developer_adds_an_endpoint(developer: Client, ada: User) -> None:
    secrets = read_secrets(developer.post(f"{ENDPOINTS}add/", build_endpoint_form()))
    endpoint = Endpoint.objects.get()
    values = (endpoint.url, endpoint.kinds, endpoint.form, endpoint.description, endpoint.in_flight_limit)
    assert values == ("https://shop.example/hook", "book.created book.deleted", "B", "The shop", 20)
    assert (endpoint.owner, endpoint.state, decrypt_secrets(endpoint)) == (ada, "active", {"active": secrets["Secret"]})
    developer.post(f"{ENDPOINTS}add/", build_endpoint_form(kinds=["book.created", "*"]))
    assert Endpoint.objects.latest("pk").kinds == "*"


def test_a_secret_is_shown_once(developer: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        secrets = [*read_secrets(developer.post(f"{ENDPOINTS}add/", build_endpoint_form())).values()]
        secrets += read_secrets(submit_action(developer, ENDPOINTS, "rotate", Endpoint.objects.get())).values()
    page = f"{ENDPOINTS}{Endpoint.objects.get().pk}/"
    texts = [dump_database(), str(dict(developer.session)), caplog.text]
    for address in [ENDPOINTS, f"{page}change/", f"{page}history/", f"{page}delete/", f"{page}replay/", "/admin/"]:
        response = developer.get(address)
        assert response.status_code == 200
        texts.append(read_text(response))
    assert len(secrets) == 2
    assert [secret for secret in secrets for text in texts if secret in text] == []


def test_the_page_of_a_new_secret_says_what_its_key_is(developer: Client) -> None:
    for form, key in (("B", "the whole text"), ("C", "whose base64 follows whsec_")):
        assert key in read_text(developer.post(f"{ENDPOINTS}add/", build_endpoint_form(form=form)))
        assert key in read_text(submit_action(developer, ENDPOINTS, "rotate", Endpoint.objects.latest("pk")))


def test_an_endpoint_with_an_old_secret_does_not_get_form_c(developer: Client, ada: User) -> None:
    endpoint = create_endpoint(ada)
    endpoint.secrets.update(sealed=encrypt_secret(OLD_SECRET))
    response = developer.post(f"{ENDPOINTS}{endpoint.pk}/change/", build_endpoint_form(form="C"))
    assert list(response.context["adminform"].form.errors) == ["form"]


INVALID_VALUES: list[tuple[str, Any]] = [
    *(("url", url) for url in ("", "https://127.0.0.1/", "https://shop.example/\0")),
    *(("kinds", kinds) for kinds in ([], ["test.ping"])),
    ("form", "D"),
    *(("description", text) for text in ("d" * 201, "a\0b")),
    *(("in_flight_limit", number) for number in ("0", "1001", "9" * 5000)),
    *(("owner", name) for name in ("", "nobody", "ada\0")),
]


def test_the_form_names_the_invalid_field_of_an_endpoint(root: Client, ada: User) -> None:
    found = []
    for name, value in INVALID_VALUES:
        response = root.post(f"{ENDPOINTS}add/", build_endpoint_form(**{"owner": "ada", name: value}))
        found.append((list(response.context["adminform"].form.errors), value))
    assert found == [([name], value) for name, value in INVALID_VALUES]
    assert not Endpoint.objects.exists()


def test_a_developer_changes_an_endpoint(developer: Client, ada: User) -> None:
    endpoint = create_endpoint(ada, state="disabled", reason="It failed.")
    page = f"{ENDPOINTS}{endpoint.pk}/change/"
    assert developer.get(page).context["adminform"].form["kinds"].value() == ["*"]
    developer.post(page, build_endpoint_form(owner="1", state="active", reason="x"))
    changed = Endpoint.objects.values_list("url", "kinds", "in_flight_limit", "owner", "state", "reason").get()
    assert changed[:3] == ("https://shop.example/hook", "book.created book.deleted", 20)
    assert changed[3:] == (ada.pk, "disabled", "It failed.")
    assert decrypt_secrets(endpoint) == {"active": SECRET}
    assert "Changed URL, Events" in read_text(developer.get(f"{ENDPOINTS}{endpoint.pk}/history/"))


def test_a_superuser_gives_an_endpoint_to_a_developer(root: Client, ada: User) -> None:
    root.post(f"{ENDPOINTS}add/", build_endpoint_form(owner="ada"))
    endpoint = Endpoint.objects.get()
    assert endpoint.owner == ada
    page = f"{ENDPOINTS}{endpoint.pk}/change/"
    assert 'name="owner" value="ada"' in read_text(root.get(page))
    root.post(page, build_endpoint_form(owner=create_owner().username))
    assert Endpoint.objects.get().owner == User.objects.get(username="listener")


def test_an_inactive_owner_can_stay_the_owner(root: Client, ada: User) -> None:
    User.objects.create_user("gone", is_active=False)
    endpoint = create_endpoint(ada)
    User.objects.filter(pk=ada.pk).update(is_active=False)
    page = f"{ENDPOINTS}{endpoint.pk}/change/"
    assert "ada is inactive." in read_text(root.get(page))
    assert root.post(page, build_endpoint_form(owner="ada", description="Kept")).status_code == 302
    assert Endpoint.objects.values_list("owner", "description").get() == (ada.pk, "Kept")
    refused = root.post(page, build_endpoint_form(owner="gone"))
    assert list(refused.context["adminform"].form.errors) == ["owner"]


def test_nobody_adds_more_endpoints_than_the_limit(
    developer: Client, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "MAX_ENDPOINTS_PER_USER", 1)
    create_endpoint(ada)
    response = developer.post(f"{ENDPOINTS}add/", build_endpoint_form(), follow=True)
    assert "No endpoint was made: 1 are there already; delete one first." in read_text(response)
    assert Endpoint.objects.count() == 1


@pytest.mark.parametrize("method", ["page", "action"])
def test_a_deleted_endpoint_keeps_its_deliveries_and_is_not_listed(developer: Client, ada: User, method: str) -> None:
    endpoint = create_endpoint(ada)
    publish_event()
    address = f"{ENDPOINTS}{endpoint.pk}/delete/" if method == "page" else ENDPOINTS
    form = {"action": "delete_selected", "_selected_action": str(endpoint.pk)} if method == "action" else {}
    page = developer.post(address, form) if form else developer.get(address)
    assert "is sent nothing more, not even what waits" in read_text(page)
    developer.post(address, {**form, "post": "yes"})
    assert Endpoint.objects.get().state == "deleted"
    assert Delivery.objects.count() == 1
    assert list_rows(developer.get(ENDPOINTS)) == []
    assert developer.get(f"{ENDPOINTS}{endpoint.pk}/change/").headers["Location"] == ENDPOINTS
    assert "(deleted)" in read_text(developer.get(f"{DELIVERIES}{Delivery.objects.get().pk}/change/"))


def test_the_list_shows_how_deliveries_of_each_endpoint_went(developer: Client, ada: User) -> None:
    working_endpoint = create_endpoint(ada)
    failing_endpoint = create_endpoint(ada, url="https://ill.example/", kinds="book.updated")
    idle_endpoint = create_endpoint(ada, state="disabled")
    publish_event(1)
    attempt_deliveries(204)
    publish_event(2)
    Delivery.objects.create(event=Event.objects.latest("pk"), endpoint=failing_endpoint)
    attempt_deliveries(None, error="Nobody answers at the address.")
    page = developer.get(ENDPOINTS)
    rows = {row.pk: row for row in list_rows(page)}
    summaries = {pk: (row.delivered, row.failing, row.last_answer_at is not None) for pk, row in rows.items()}
    assert summaries == {
        working_endpoint.pk: (1, 1, True),
        failing_endpoint.pk: (0, 1, True),
        idle_endpoint.pk: (0, 0, False),
    }
    assert rows[failing_endpoint.pk].last_answer == "Nobody answers at the address."
    words = read_words(page)
    for sentence in (
        "1 delivered, 1 failing. The last answer was 204. 31 Jan 2026",
        "0 delivered, 1 failing. Nobody answers at the address. 31 Jan 2026",
        "Nothing sent yet.",
    ):
        assert sentence in words


def test_endpoints_are_found(root: Client, ada: User) -> None:
    own_endpoint, other = (
        create_endpoint(ada, description="Bindery"),
        create_endpoint(url="https://other.example/", state="disabled"),
    )
    results = {query: list_rows(root.get(f"{ENDPOINTS}?{query}")) for query in ("q=bind", "q=ada", "q=other.example")}
    assert results == {"q=bind": [own_endpoint], "q=ada": [own_endpoint], "q=other.example": [other]}
    assert list_rows(root.get(f"{ENDPOINTS}?state__exact=disabled")) == [other]


def test_developers_see_their_own_endpoints_and_deliveries(developer: Client, ada: User) -> None:
    own_endpoint, other_endpoint = create_endpoint(ada), create_endpoint(url="https://theirs.example/")
    publish_event()
    assert list_rows(developer.get(ENDPOINTS)) == [own_endpoint]
    assert [row.endpoint_id for row in list_rows(developer.get(DELIVERIES))] == [own_endpoint.pk]
    assert list_rows(developer.get(f"{DELIVERIES}?endpoint__id__exact={other_endpoint.pk}")) == []
    assert other_endpoint.url not in read_text(developer.get(DELIVERIES))
    developer.force_login(User.objects.create_superuser("root"))
    assert [len(list_rows(developer.get(address))) for address in (ENDPOINTS, DELIVERIES)] == [2, 2]


def test_developers_do_not_reach_the_endpoints_of_others(developer: Client) -> None:
    other_endpoint = create_endpoint()
    publish_event()
    form = {**build_endpoint_form(), **build_replay_form(), "post": "yes"}
    for page in ("change", "delete", "history", "replay"):
        response = developer.post(f"{ENDPOINTS}{other_endpoint.pk}/{page}/", form)
        assert response.status_code in (302, 404), page
        assert other_endpoint.url not in read_text(developer.get(f"{ENDPOINTS}{other_endpoint.pk}/{page}/")), page
    for action in ("ping", "rotate", "delete_selected"):
        submit_action(developer, ENDPOINTS, action, other_endpoint)
    assert Endpoint.objects.values_list("url", "state").get() == (other_endpoint.url, "active")
    assert decrypt_secrets(other_endpoint) == {"active": SECRET}
    assert Delivery.objects.count() == 1


def test_a_page_has_buttons_for_what_can_be_done_now(developer: Client, ada: User) -> None:
    endpoint, found = create_endpoint(ada), []
    for state in ("active", "disabled"):
        Endpoint.objects.update(state=state)
        endpoint.secrets.filter(state="pending").delete()
        for _ in range(2):
            page = read_text(developer.get(f"{ENDPOINTS}{endpoint.pk}/change/"))
            found.append(re.findall(r'name="action" value="(\w+)"', page))
            endpoints.add_endpoint_secret(endpoint, None, MOMENT)
    active, disabled = ["ping", "disable", "rotate"], ["enable", "rotate"]
    assert found == [active, [*active, "promote"], disabled, [*disabled, "promote"]]
    assert 'name="action"' not in read_text(developer.get(f"{ENDPOINTS}add/"))


def test_a_ping_leads_to_its_delivery(developer: Client, ada: User) -> None:
    endpoint = create_endpoint(ada)
    response = submit_action(developer, ENDPOINTS, "ping", endpoint)
    delivery = Delivery.objects.select_related("event").get()
    assert (delivery.endpoint, delivery.event.kind) == (endpoint, "test.ping")
    assert response.redirect_chain == [(f"{DELIVERIES}{delivery.pk}/change/", 302)]
    assert "Pinged." in read_text(developer.get(f"{ENDPOINTS}{endpoint.pk}/history/"))


def test_endpoints_are_disabled_and_enabled(developer: Client, ada: User) -> None:
    first, second = create_endpoint(ada), create_endpoint(ada, state="disabled", reason="10 in a row", dead_in_a_row=10)
    assert list_badges(developer.get(ENDPOINTS)) == ["Disabled", "Active"]
    # Its page has one for the secret, too.
    assert list_badges(developer.get(f"{ENDPOINTS}{second.pk}/change/")) == ["Disabled", "Active"]
    submit_action(developer, ENDPOINTS, "disable", first, second, query="state__exact=active")
    assert Endpoint.objects.get(pk=first.pk).state == "disabled"
    submit_action(developer, ENDPOINTS, "enable", first, second)
    assert set(Endpoint.objects.values_list("state", "reason", "dead_in_a_row")) == {("active", "", 0)}
    history = read_text(developer.get(f"{ENDPOINTS}{first.pk}/history/"))
    assert history.index("Made active.") < history.index("Made disabled.")


def test_a_secret_is_changed_in_two_steps(developer: Client, ada: User) -> None:
    endpoint = create_endpoint(ada)
    pending_secret = read_secrets(submit_action(developer, ENDPOINTS, "rotate", endpoint))["Pending secret"]
    assert decrypt_secrets(endpoint) == {"active": SECRET, "pending": pending_secret}
    page = developer.get(f"{ENDPOINTS}{endpoint.pk}/change/")
    assert list_badges(page)[-2:] == ["Active", "Pending"]
    assert "Promote the pending one when the receiver knows it too." in read_text(page)
    submit_action(developer, ENDPOINTS, "promote", endpoint)
    assert decrypt_secrets(endpoint) == {"active": pending_secret}
    history = read_text(developer.get(f"{ENDPOINTS}{endpoint.pk}/history/"))
    assert "Made a new secret, which is pending." in history
    assert "Promoted the pending secret." in history


def test_an_action_that_is_not_possible_says_why(developer: Client, ada: User) -> None:
    first, second = create_endpoint(ada), create_endpoint(ada, state="disabled")
    for action, rows, reason in (
        ("rotate", [first, second], "Nothing was changed: select one."),
        ("promote", [first, second], "Nothing was changed: select one."),
        ("promote", [first], "no secret is pending"),
        ("ping", [second], "Nothing was changed."),
    ):
        assert reason in read_text(submit_action(developer, ENDPOINTS, action, *rows)), action
    assert (decrypt_secrets(first), Delivery.objects.count()) == ({"active": SECRET}, 0)


def test_past_events_can_be_replayed(developer: Client, ada: User) -> None:
    publish_event()
    endpoint = create_endpoint(ada)
    page = f"{ENDPOINTS}{endpoint.pk}/replay/"
    assert developer.get(f"{ENDPOINTS}4711/replay/").headers["Location"] == ENDPOINTS
    assert "The event is on its way again." in read_text(confirm_replay(developer, page, build_replay_form()))
    assert Delivery.objects.get().endpoint == endpoint
    assert "Replayed events: 1." in read_text(developer.get(f"{ENDPOINTS}{endpoint.pk}/history/"))
    second_response = developer.post(page, build_replay_form(kinds=["book.deleted"]))
    assert "No event is of this time and kind." in read_text(second_response)


def test_a_replay_says_how_many_events_it_sends_and_waits_for_a_yes(developer: Client, ada: User) -> None:
    publish_event(1)
    publish_event(2)
    page = f"{ENDPOINTS}{create_endpoint(ada).pk}/replay/"
    question = developer.post(page, build_replay_form())
    assert "2 events are of this time" in read_text(question)
    assert "Send 2 events again" in read_text(question)
    assert not Delivery.objects.exists()
    confirmation = read_inputs(read_text(question))
    # A yes is about these events and no others.
    for other, words in (
        ({"before_0": confirmation["after_0"], "before_1": "23:59:59"}, "No event is of this time"),
        ({"after_0": "2020-01-01"}, "2 events are of this time"),
        ({"kinds": ["book.created"]}, "2 events are of this time"),
    ):
        assert words in read_text(developer.post(page, {**confirmation, **other}))
    Event.objects.latest("pk").delete()
    question = developer.post(page, confirmation)
    assert "1 event is of this time" in read_text(question)
    assert not Delivery.objects.exists()
    confirmation = read_inputs(read_text(question))
    # The end is fixed by now: what comes since is delivered anyway, and is not asked about.
    assert confirmation["before_0"]
    assert developer.post(page, confirmation).status_code == 302
    assert Delivery.objects.count() == 1


def test_a_replay_until_now_is_asked_about_once_and_is_what_the_page_offers(developer: Client, ada: User) -> None:
    publish_event()
    developer.cookies["time_zone"] = "America/St_Johns"
    page = f"{ENDPOINTS}{create_endpoint(ada).pk}/replay/"
    question = developer.post(page, read_inputs(read_text(developer.get(page))))
    assert "1 event is of this time" in read_text(question)
    assert developer.post(page, read_inputs(read_text(question))).status_code == 302
    assert Delivery.objects.count() == 1


def read_error(response: Any, form: dict[str, Any]) -> str:
    """Returns why the replay was refused; checks that its form still holds what was sent."""
    assert response.status_code == 200
    sent = response.context["form"].data
    assert {name: sent.getlist(name) for name in form} == {
        name: value if isinstance(value, list) else [value] for name, value in form.items()
    }
    [reason] = response.context["form"].non_field_errors()
    return str(reason)


def test_a_replay_that_is_refused_says_what_to_do(
    developer: Client, ada: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_event(1)
    publish_event(2)
    endpoint, form = create_endpoint(ada), build_replay_form()
    page, narrower = f"{ENDPOINTS}{endpoint.pk}/replay/", "Choose fewer events, a later start or an earlier end"
    with monkeypatch.context() as patch:
        patch.setattr("webhooks.endpoints.MAX_REPLAYED_EVENTS", 1)
        assert narrower in read_error(developer.post(page, form), form)
    settings.WEBHOOKS_MAX_WAITING = 1
    assert narrower in read_error(developer.post(page, form), form)
    Endpoint.objects.update(state="disabled")
    reason = read_error(developer.post(page, form), form)
    assert reason == "Nothing was replayed. The endpoint is disabled. Enable it on its page."
    assert not Delivery.objects.exists()


def test_an_invalid_replay_is_explained(developer: Client, ada: User) -> None:
    publish_event()
    page = f"{ENDPOINTS}{create_endpoint(ada).pk}/replay/"
    changes: list[tuple[str, dict[str, Any]]] = [
        ("kinds", {"kinds": ["\0"]}),
        ("after", {"after_0": ""}),
        ("after", {"after_0": "\0", "after_1": "9" * 5000}),
        ("after", {"after_0": "0000-00-00"}),
        ("__all__", {"before_0": "0001-01-01", "before_1": "00:00"}),
        ("before", {"before_0": "0001-01-01T00:00+23:59", "before_1": "00:00"}),
    ]
    for field, change in changes:
        response = developer.post(page, build_replay_form(**change))
        assert list(response.context["form"].errors) == [field], change
        assert response.context["question"] is None


def test_the_form_of_a_replay_has_dates_that_every_browser_reads(developer: Client, ada: User) -> None:
    """An input of a date takes ISO 8601 alone, and German writes 31.01.2026."""
    page = read_text(developer.get(f"{ENDPOINTS}{create_endpoint(ada).pk}/replay/", headers={"accept-language": "de"}))
    assert re.search(r'<input type="date" name="after_0" value="\d{4}-\d\d-\d\d"', page)
    assert re.search(r'<input type="time" name="after_1" value="\d\d:\d\d:\d\d"', page)
