"""Events that other services send to the served library."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.support.concurrency import run_concurrently
from tests.support.failures import build_error
from tests.support.server import Service, run_in_shell
from tests.support.sources import SOURCE_NAME, build_event, post_event

# Runs in a process that uses the service's database, which this process does not.
CREATE_SOURCE = f"from tests.support.sources import create_source; create_source({SOURCE_NAME!r})"


def test_an_event_that_is_sent_many_times_at_once_is_stored_once(service: Service) -> None:
    run_in_shell(service.database_url, CREATE_SOURCE)
    events = [build_event() for _ in range(4)]
    responses = run_concurrently(service, [partial(post_event, body=event) for event in events * 6])
    assert {(response.status_code, response.text) for response in responses} == {(200, '{"received":true}')}
    expected_ids = sorted(event["id"] for event in events)
    rows = service.fetch_all("SELECT event_id FROM webhooks_received")
    # Other tests use the service, too.
    assert sorted(event_id for (event_id,) in rows if event_id in expected_ids) == expected_ids


@pytest.mark.parametrize("name", ["%00", "%ff", "ü", "a/b", "a%2Fb", "", "."])
def test_strange_names_are_not_found(service: Service, name: str) -> None:
    with service.open_client() as client:
        response = post_event(client, build_event(), name)
    assert (response.status_code, response.json()) == (404, build_error("NOT_FOUND", "Not Found"))


def test_a_body_of_unknown_length_is_read(service: Service) -> None:
    def chunks(size: int) -> Iterator[bytes]:
        yield b"{}".ljust(size)

    with service.open_client() as client:
        responses = [client.post("/webhooks/receive/nobody", content=chunks(size)) for size in (2, 1024 * 1024 + 1)]
    assert [response.status_code for response in responses] == [404, 413]
