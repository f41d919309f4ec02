"""The admin pages of deliveries, as a browser meets them."""

import html
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.support.admin_pages import list_badges, list_rows, read_text, submit_action
from tests.support.endpoints import SECRET, create_endpoint, create_owner, publish_event
from tests.support.webhooks_admin import DELIVERIES, MOMENT, attempt_deliveries
from webhooks.admin import model_admins
from webhooks.models import Attempt, Delivery, Endpoint

pytestmark = pytest.mark.usefixtures("db")


def test_the_page_of_a_delivery_shows_its_event_and_its_attempts(developer: Client, ada: User) -> None:
    endpoint = create_endpoint(ada)
    publish_event()
    attempt_deliveries(500, answer=b"<b>Caf\xc3\xa9\0\xff")
    delivery = Delivery.objects.select_related("event").get()
    Attempt.objects.bulk_create(
        Attempt(delivery=delivery, started_at=MOMENT, milliseconds=n, error=f"Error {n}.", answer=b"") for n in range(5)
    )
    address = f"{DELIVERIES}{delivery.pk}/change/"
    source = read_text(developer.get(address))
    page = html.unescape(source)
    for text in (
        json.dumps(json.loads(bytes(delivery.event.body)), indent=2),
        str(delivery.event.uuid),
        endpoint.url,
        "<pre><b>Café\ufffd\ufffd</pre>",
        "X-Webhook-Event: book.created\nX-Webhook-Timestamp: 1769851800",
        "500",
        *(f"Error {n}." for n in range(5)),
    ):
        assert text in page
    assert "<b>Café" not in source
    assert SECRET not in page
    Endpoint.objects.update(form="C")
    page = read_text(developer.get(address))
    headers = f"X-Webhook-Event: book.created\nwebhook-id: {delivery.event.uuid}\nwebhook-timestamp: 1769851800"
    assert headers in page
    assert "X-Webhook-Timestamp" not in page


def test_a_delivery_is_headed_by_what_happened(developer: Client, ada: User) -> None:
    create_endpoint(ada)
    for status, heading, sentence, badge in (
        (204, "delivered, 31 Jan 2026, 09:30", "The receiver took it at the first attempt.", 'good">Delivered'),
        (500, "failing since", "1 attempt failed. The next one is due", 'warning">Failing'),
    ):
        publish_event()
        attempt_deliveries(status)
        Delivery.objects.filter(state="delivered").update(finished_at=MOMENT)
        page = read_text(developer.get(f"{DELIVERIES}{Delivery.objects.latest('pk').pk}/change/"))
        # The time of a heading does not break.
        heading = heading.replace("1 Jan 2026, ", "1\N{NO-BREAK SPACE}Jan\N{NO-BREAK SPACE}2026,\N{NO-BREAK SPACE}")
        assert [f"<{element}>book.created {heading}" in page for element in ("h1", "title")] == [True, True]
        assert sentence in page
        rows = read_text(developer.get(DELIVERIES))
        assert sentence in rows
        assert f'<span class="badge {badge}</span>' in rows
        # The attempts come first, and the id of the event is among the details.
        places = [html.unescape(page).index(text) for text in (f"{status}</span>", '"id": ', "Event's id")]
        assert places == sorted(places)


def test_a_delivery_has_a_button_while_its_endpoint_is_active(developer: Client, ada: User) -> None:
    create_endpoint(ada)
    publish_event()
    for state, count in (("active", 1), ("disabled", 0)):
        Endpoint.objects.update(state=state)
        page = read_text(developer.get(f"{DELIVERIES}{Delivery.objects.get().pk}/change/"))
        assert page.count('value="redeliver"') == count
        assert "<h1>book.created waiting since" in page
    assert list_badges(developer.get(DELIVERIES)) == ["Waiting"]


def test_deliveries_are_found_by_state_and_endpoint(developer: Client, ada: User) -> None:
    first, second = create_endpoint(ada), create_endpoint(ada)
    publish_event()
    [first_delivery, second_delivery] = [Delivery.objects.get(endpoint=endpoint) for endpoint in (first, second)]
    Delivery.objects.filter(pk=first_delivery.pk).update(state="dead", next_at=None)
    assert list_rows(developer.get(f"{DELIVERIES}?state__exact=dead")) == [first_delivery]
    assert list_rows(developer.get(f"{DELIVERIES}?endpoint__id__exact={second.pk}")) == [second_delivery]
    # Django would ignore a filter with a single choice.
    Endpoint.objects.filter(pk=second.pk).update(state="deleted")
    assert list_rows(developer.get(f"{DELIVERIES}?endpoint__id__exact={second.pk + 1}")) == []


def test_deliveries_are_sent_again(developer: Client, ada: User) -> None:
    create_endpoint(ada)
    publish_event()
    attempt_deliveries()
    [delivery] = Delivery.objects.all()
    response = submit_action(developer, DELIVERIES, "redeliver", delivery)
    redelivery = Delivery.objects.latest("pk")
    assert (redelivery.event_id, redelivery.endpoint_id) == (delivery.event_id, delivery.endpoint_id)
    assert (redelivery.replay, redelivery.state) == (1, "waiting")
    assert response.redirect_chain == [(f"{DELIVERIES}{redelivery.pk}/change/", 302)]
    history = read_text(developer.get(f"{DELIVERIES}{delivery.pk}/history/"))
    assert [text in history for text in ("Sent again.", ">book.created delivered, ", str(delivery))] == [
        True,
        True,
        False,
    ]
    response = submit_action(developer, DELIVERIES, "redeliver", *Delivery.objects.all(), query="state__exact=waiting")
    # The first one is delivered, and no part of the list.
    assert "/change/" in response.redirect_chain[0][0]
    rows = Delivery.objects.filter(state="waiting")
    response = submit_action(developer, DELIVERIES, "redeliver", *rows, query="state__exact=waiting")
    assert "2 events are on their way again." in read_text(response)
    assert Delivery.objects.count() == 5


def test_nothing_is_sent_again_to_an_endpoint_that_is_not_active(developer: Client, ada: User) -> None:
    create_endpoint(ada)
    publish_event()
    for state in ("disabled", "deleted"):
        Endpoint.objects.update(state=state)
        response = submit_action(
            developer, DELIVERIES, "redeliver", Delivery.objects.get(), query="state__exact=waiting"
        )
        assert "Nothing was changed." in read_text(response)
    assert Delivery.objects.count() == 1


def test_no_more_deliveries_than_the_limit_are_sent_again_at_once(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_admins, "MAX_SELECTED", 1)
    create_endpoint(), create_endpoint(create_owner("other"))
    publish_event()
    form = {"action": "redeliver", "_selected_action": "1", "select_across": "1", "index": "0"}
    response: Any = root.post(DELIVERIES, form, follow=True)
    assert "Nothing was changed: select 1 at most." in read_text(response)
    assert Delivery.objects.count() == 2
