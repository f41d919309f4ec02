"""What all admin pages of access and of webhooks share: who may see them, and that no address or form fails."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from oauth2_provider.models import Application

from oauth.models import Authorization
from tests.support import oauth_flows, sources
from tests.support.admin_pages import ODD_IDS, ODD_QUERIES, ODD_SELECTIONS, read_text, submit_action
from tests.support.endpoints import create_endpoint, create_owner, publish_event
from tests.support.oauth_flows import create_key_header
from tests.support.webhooks_admin import (
    DELIVERIES,
    ENDPOINTS,
    INBOX,
    SOURCES,
    attempt_deliveries,
    build_replay_form,
)
from webhooks.models import Delivery, Received

pytestmark = pytest.mark.usefixtures("db")
APPS, ACCESS, KEYS = "/admin/oauth2_provider/application/", "/admin/oauth/authorization/", "/admin/oauth/apikey/"
LISTS = [ENDPOINTS, DELIVERIES, SOURCES, INBOX, APPS, ACCESS, KEYS]


def test_staff_outside_the_group_may_see_no_page(client: Client) -> None:
    client.force_login(User.objects.create_user("visitor", is_staff=True))
    endpoint = create_endpoint()
    assert {client.get(address).status_code for address in [*LISTS, f"{ENDPOINTS}{endpoint.pk}/replay/"]} == {403}


def test_who_may_only_view_has_no_buttons(client: Client) -> None:
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(*Permission.objects.filter(codename__in=["view_endpoint", "view_delivery"]))
    client.force_login(viewer)
    endpoint = create_endpoint(viewer)
    publish_event()
    pages = [f"{ENDPOINTS}{endpoint.pk}/change/", f"{DELIVERIES}{Delivery.objects.get().pk}/change/"]
    for page in pages:
        response: Any = client.get(page)
        assert response.status_code == 200
        assert 'name="action"' not in read_text(response)
        assert "Replay</a>" not in read_text(response)
    submit_action(client, ENDPOINTS, "ping", endpoint)
    assert Delivery.objects.count() == 1
    assert client.post(f"{ENDPOINTS}{endpoint.pk}/replay/", build_replay_form()).status_code == 403


def test_deliveries_and_received_events_may_not_be_edited(root: Client) -> None:
    create_endpoint()
    publish_event()
    sources.store_received(sources.create_source())
    rows: list[tuple[str, Any]] = [(DELIVERIES, Delivery.objects.get()), (INBOX, Received.objects.get())]
    for address, row in rows:
        for page in ("add/", f"{row.pk}/change/", f"{row.pk}/delete/"):
            assert root.post(f"{address}{page}", {"state": "dead", "post": "yes"}).status_code == 403, page
        submit_action(root, address, "delete_selected", row)
        assert type(row).objects.get().state == "waiting"


# What each list is asked for by its own filters.
QUERIES = {
    ENDPOINTS: [*ODD_QUERIES, "state__exact=bogus"],
    DELIVERIES: ["state__exact=%00", *(f"endpoint__id__exact={text}" for text in ("%00", "abc", "9" * 23, "9" * 5000))],
    SOURCES: ["q=%00", "enabled__exact=maybe"],
    INBOX: ["q=%00", "source__id__exact=" + "9" * 23],
    APPS: ["q=%00", "client_type__exact=%00", "client_type__exact=trusted"],
    ACCESS: ["q=%00", "ended_at__isempty=%00"],
    KEYS: ["q=%00", "revoked_at__isempty=maybe"],
}
# Columns that nobody may probe.
PROBES = [
    *(f"{ENDPOINTS}?{column}__startswith=g" for column in ("secrets__sealed", "owner__password")),
    f"{DELIVERIES}?endpoint__secrets__sealed__regex=(",
    f"{SOURCES}?secrets__sealed__startswith=g",
    *(f"{APPS}?{column}__startswith=p" for column in ("client_secret", "user__password", "user__email")),
    f"{ACCESS}?user__password__startswith=p",
    f"{KEYS}?digest__startswith=0",
]


def test_no_address_fails(root: Client) -> None:
    # The documentation is one.
    Application.objects.all().delete()
    addresses = [f"{address}?{query}" for address, queries in QUERIES.items() for query in queries]
    statuses = {address: root.get(address).status_code for address in addresses}
    assert [address for address, status in statuses.items() if status not in (200, 302, 400)] == []
    assert [address for address in PROBES if root.get(address).status_code != 400] == []
    pages = [*((ENDPOINTS, pk) for pk in ODD_IDS), *((address, "abc") for address in LISTS)]
    places = {f"{address}{pk}": root.get(f"{address}{pk}/change/").headers["Location"] for address, pk in pages}
    assert places == {f"{address}{pk}": address for address, pk in pages}


def test_a_form_is_not_filled_from_its_address(root: Client) -> None:
    query = f"owner=%00&kinds=%00&url=%00&secret=x&in_flight_limit={'9' * 5000}"
    assert [root.get(f"{address}add/?{query}").status_code for address in (ENDPOINTS, SOURCES)] == [200] * 2


def test_a_selection_of_rows_that_do_not_exist_changes_nothing(root: Client) -> None:
    actions = [(ENDPOINTS, name) for name in ("disable", "enable", "rotate", "promote", "delete_selected")]
    actions += [(DELIVERIES, "redeliver"), (SOURCES, "add_secret"), (INBOX, "requeue")]
    actions += [(APPS, "make_new_secret"), (ACCESS, "end"), (KEYS, "revoke")]
    selections = [(ENDPOINTS, "ping", pk) for pk in ODD_SELECTIONS] + [(*action, "abc") for action in actions]
    for address, action, pk in selections:
        response: Any = root.post(address, {"action": action, "_selected_action": pk}, follow=True)
        assert "What was selected is no longer there." in read_text(response), (action, pk)


def test_a_longer_list_takes_no_more_queries(root: Client) -> None:
    counts: dict[str, list[int]] = {address: [] for address in LISTS}
    for number in range(2):
        owner = create_owner(f"listener-{number}")
        create_endpoint(owner)
        publish_event(number)
        attempt_deliveries()
        sources.store_received(sources.create_source(f"branch-{number}"))
        app = oauth_flows.create_confidential_app(f"app-{number}", user=owner)
        Authorization.objects.create(user=owner, application=app, scopes="read", created_at=timezone.now())
        create_key_header(owner, "webhooks")
        for address in LISTS:
            with CaptureQueriesContext(connection) as queries:
                root.get(address)
            counts[address].append(len(queries))
    assert {address: count for address, (count, more) in counts.items() if more > count} == {}
