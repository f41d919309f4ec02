"""Books are looked up at servers that may be slow, broken or hostile; what they answered is remembered."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.utils import translation
from django.utils.translation import get_language
from pytest_django import Settings

from books.files.catalogues import lookup, sru
from books.files.catalogues.lookup import CatalogueEntry, CatalogueResult
from tests.support.receivers import respond_with
from tests.support.server import reserve_port
from tests.support.sru_servers import (
    ISBN,
    build_record,
    build_response,
    drip,
    flood,
    respond_with_records,
    start_catalogue,
    stay_silent,
)

pytestmark = pytest.mark.usefixtures("catalogues_of_this_machine")

FOUND = CatalogueEntry("127.0.0.1", {"title": "Emma", "author": "Austen, Jane", "year": 1815, "genre": "Novel"})
# Long enough for a busy machine, where something has to arrive.
SECONDS = 5.0


def look_up(seconds: float = SECONDS) -> CatalogueResult:
    return lookup.look_up(ISBN, seconds)


def look_up_at(settings: Settings, response: Callable[[Any], None], seconds: float = SECONDS) -> CatalogueResult:
    with start_catalogue(response) as catalogue:
        settings.SRU_SERVERS = [catalogue.template]
        return look_up(seconds)


def test_a_server_is_asked_for_the_isbn_and_for_ten_digits_too(settings: Settings) -> None:
    with start_catalogue(respond_with_records(build_record())) as catalogue:
        settings.SRU_SERVERS = [catalogue.template]
        assert look_up() == CatalogueResult(FOUND)
        settings.SRU_SERVERS = [f"{catalogue.template}%20or%20bath.isbn%3D{{isbn10}}"]
        assert look_up() == CatalogueResult(FOUND)
        # There are none of a number that begins with 979.
        lookup.look_up("9791034304783", SECONDS)
    begin = "/sru?version=1.1&operation=searchRetrieve&maximumRecords=5&recordSchema=marcxml&query=bath.isbn%3D"
    assert catalogue.paths == [
        f"{begin}{ISBN}",
        f"{begin}{ISBN}%20or%20bath.isbn%3D0141439580",
        f"{begin}9791034304783%20or%20bath.isbn%3D9791034304783",
    ]


def test_the_reason_is_in_the_language_of_who_asks_and_the_log_in_english(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sru, "gettext", lambda text: f"{get_language()}: {text}")
    with translation.override("de"):
        found = look_up_at(settings, respond_with(500))
    assert found.problems == ("127.0.0.1: de: It answered with the status 500.",)
    assert "127.0.0.1 says nothing. It answered with the status 500." in caplog.text


@pytest.mark.parametrize(
    ("response", "seconds", "reason"),
    [
        (stay_silent, 0.3, "It did not answer in time."),
        (flood, SECONDS, "Its answer is too large."),
        (respond_with(200, b" " * 2**18 + build_response()), SECONDS, "Its answer is too large."),
        (respond_with(500), SECONDS, "It answered with the status 500."),
        (lambda handler: handler.wfile.write(b"\x00"), SECONDS, "It cannot be reached, or the connection broke."),
        (respond_with(200, b"", Content_Length="9"), SECONDS, "It cannot be reached, or the connection broke."),
    ],
)
def test_a_failure_has_a_reason(
    settings: Settings, response: Callable[[Any], None], seconds: float, reason: str
) -> None:
    assert look_up_at(settings, response, seconds) == CatalogueResult(None, (f"127.0.0.1: {reason}",))


def test_no_redirect_is_followed(settings: Settings) -> None:
    with start_catalogue(respond_with_records(build_record())) as inside:
        response = respond_with(308, Location=inside.template.format(isbn=ISBN))
        found = look_up_at(settings, response)
    assert found.problems == ("127.0.0.1: It refers to another address, which is not followed.",)
    assert inside.paths == []


@pytest.mark.parametrize("host", ["localhost", "169.254.169.254"])
def test_private_addresses_are_reached_only_if_they_are_allowed(settings: Settings, host: str) -> None:
    settings.SRU_ALLOW_PRIVATE = False
    with start_catalogue(respond_with_records(build_record())) as catalogue:
        settings.SRU_SERVERS = [catalogue.template.replace("127.0.0.1", host)]
        [problem] = look_up().problems
    assert problem.endswith(": Its address is not a public one.")
    assert catalogue.paths == []


def test_an_address_where_nothing_listens_is_a_failure(settings: Settings) -> None:
    with reserve_port() as port:
        settings.SRU_SERVERS = [f"http://127.0.0.1:{port}/{{isbn}}"]
        assert look_up().problems == ("127.0.0.1: It cannot be reached, or the connection broke.",)


@pytest.mark.parametrize("first", [drip, respond_with(500), respond_with_records()])
def test_the_next_server_is_asked_if_one_fails_or_has_nothing(settings: Settings, first: Callable[[Any], None]) -> None:
    with start_catalogue(first) as slow, start_catalogue(respond_with_records(build_record())) as second:
        settings.SRU_SERVERS = [slow.template, second.template]
        assert look_up(2.0).entry == FOUND


@pytest.mark.parametrize(
    ("first", "second", "remembered"),
    [
        (respond_with_records(build_record()), stay_silent, CatalogueResult(FOUND)),
        (respond_with_records(), respond_with_records(), CatalogueResult()),
        (respond_with(500), respond_with_records(build_record()), CatalogueResult(FOUND)),
        (respond_with(500), respond_with_records(), None),
        (respond_with_records(), respond_with(500), None),
    ],
)
def test_what_was_found_is_remembered_and_no_failure(
    settings: Settings, first: Callable[[Any], None], second: Callable[[Any], None], remembered: CatalogueResult | None
) -> None:
    with start_catalogue(first) as one, start_catalogue(second) as other:
        settings.SRU_SERVERS = [one.template, other.template]
        entry = look_up().entry
    assert entry == (remembered and remembered.entry)
    # The first response counts.
    assert bool(other.paths) is not (second is stay_silent)
    assert lookup.find_remembered(ISBN) == remembered


@pytest.mark.parametrize(("records", "hours"), [([build_record()], 7 * 24), ([], 1)])
def test_a_response_counts_for_a_while(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, records: list[str], hours: int
) -> None:
    look_up_at(settings, respond_with_records(*records))
    end = time.time() + hours * 3600
    for moment, is_remembered in ((end - 60, True), (end + 60, False)):
        monkeypatch.setattr(time, "time", partial(float, moment))
        assert (lookup.find_remembered(ISBN) is not None) is is_remembered
