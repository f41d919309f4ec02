"""People read pages in their language, with times in their zone. Programs are always answered in English, in UTC."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from books.writing import changes
from library_site.http.localization import ZONE_COOKIE
from oauth import api_keys
from oauth.models import Profile
from tests.support.account_pages import PASSWORD, submit
from tests.support.admin_pages import read_text
from tests.support.books import build_book
from tests.support.books_admin import find_anybody
from tests.support.endpoints import create_endpoint
from tests.support.oauth_flows import submit_sign_in

GERMAN = {"Accept-Language": "de-AT, de;q=0.9, en;q=0.5"}
BROWSER = {"Accept": "text/html"}
# Of the compiled path, of Django's handler for programs, and of the one for pages.
PROGRAM_REQUESTS: list[tuple[str, str, object]] = [
    ("GET", "/", None),
    ("GET", "/api/books", None),
    ("GET", "/api/books/0", None),
    ("POST", "/api/books", {"title": "", "year": "x", "isbn": "\0"}),
    ("GET", "/api/v2/books?limit=x", None),
    ("GET", "/api/v2/nothing", None),
    ("PUT", "/api/v2/books/0", {"title": 5}),
    ("GET", "/openapi.json", None),
    ("GET", "/docs", None),
    ("POST", "/oauth/token", None),
    ("POST", "/webhooks/nothing", None),
    ("GET", "/.well-known/nothing", None),
]


def read_language(page: httpx.Response) -> str:
    match = re.search(r'<html lang="([^"]+)"', page.text)
    assert match
    return match[1]


def answer_programs(api: httpx.Client, **headers: str) -> Iterator[tuple[int, bytes, str | None, str | None]]:
    for method, path, body in PROGRAM_REQUESTS:
        response = api.request(method, path, json=body, headers=headers)
        content = response.content.replace(response.headers["X-Request-ID"].encode(), b"")
        yield response.status_code, content, response.headers.get("Vary"), response.headers.get("Content-Language")


@pytest.mark.usefixtures("book")
def test_programs_are_answered_in_english_whatever_they_send(api: httpx.Client) -> None:
    """Also after a German page: one thread serves people and programs."""
    expected = list(answer_programs(api))
    cookies = f"django_language=de; {ZONE_COOKIE}=Asia/Tokyo"
    assert list(answer_programs(api, Cookie=cookies, **GERMAN)) == expected
    api.cookies.set(ZONE_COOKIE, "Asia/Tokyo")
    for path in ("/accounts/login", "/nothing", "/accounts/profile"):
        page = api.get(path, headers=GERMAN | BROWSER)
        assert page.is_redirect or read_language(page) == "de"
    api.cookies.clear()
    assert list(answer_programs(api)) == expected
    # REST framework reads times without a zone in it.
    assert timezone.get_current_timezone_name() == "UTC"


def test_a_page_is_in_the_language_that_the_browser_prefers(api: httpx.Client) -> None:
    malformed = ";;q=,de-" + "x" * 1000
    for accepted, language in (
        ("DE-ch", "de"),
        ("fr, de;q=0.1", "de"),
        ("en, de", "en"),
        ("*", "en"),
        (malformed, "en"),
    ):
        page = api.get("/accounts/login", headers={"Accept-Language": accepted})
        assert read_language(page) == page.headers["Content-Language"] == language, accepted
        assert {"Accept-Language", "Cookie"} <= set(page.headers["Vary"].split(", "))


def test_a_person_chooses_the_language_before_signing_in(api: httpx.Client) -> None:
    assert api.get("/accounts/language?language=de").status_code == 405
    assert api.post("/accounts/language", data={"language": "de"}).status_code == 403
    unknown = submit(api, "/accounts/language", "/accounts/login", language="fr")
    assert (unknown.status_code, unknown.headers.get("Set-Cookie")) == (302, None)
    for target in ("https://elsewhere.example/", "//elsewhere.example", "javascript:alert()", "/accounts/login"):
        response = submit(api, f"/accounts/language?next={target}", "/accounts/login", language="de")
        own_page = "/accounts/login" if target == "/accounts/login" else "/accounts/apps"
        assert response.headers["Location"] == own_page, target
    assert read_language(api.get("/accounts/login", headers={"Accept-Language": "en"})) == "de"
    assert not Profile.objects.exists()


def test_the_account_keeps_the_language_for_the_next_sign_in(api: httpx.Client) -> None:
    jane = User.objects.create_user("jane", password=PASSWORD)
    submit_sign_in(api, "jane", PASSWORD)
    submit(api, "/accounts/language", "/accounts/profile", language="de")
    assert Profile.objects.get().language == "de"
    api.cookies.clear()
    assert read_language(api.get("/accounts/login")) == "en"
    submit_sign_in(api, "jane", PASSWORD)
    assert read_language(api.get("/accounts/profile")) == "de"
    jane.delete()
    assert not Profile.objects.exists()


def test_a_page_names_the_zone_of_its_times(root: Client) -> None:
    for zone in ("Europe/Berlin", "", "Mars/Base", "../../etc/passwd", "/etc/localtime", "x" * 4000, "%00"):
        root.cookies[ZONE_COOKIE] = zone
        shown = zone if zone == "Europe/Berlin" else "UTC"
        assert f"Times: {shown}<" in read_text(root.get("/admin/auth/user/")), zone


def test_times_are_those_of_the_readers_zone(root: Client) -> None:
    User.objects.update(last_login="2026-07-31T22:30:00Z")
    root.cookies[ZONE_COOKIE] = "Asia/Tokyo"
    assert 'datetime="2026-08-01T07:30' in read_text(root.get(f"/admin/auth/user/{User.objects.get().pk}/change/"))


def test_no_time_makes_a_page_fail_in_any_zone(root: Client) -> None:
    """The first moment where days begin early, the last one where they begin late, and one that New York skips."""
    user = User.objects.get()
    last_moment = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    key, _ = api_keys.create_key(user, "Scanner", frozenset({"read"}), timezone.now(), last_moment)
    replay = f"/admin/webhooks/endpoint/{create_endpoint(user).pk}/replay/"
    root.cookies[ZONE_COOKIE] = "Pacific/Kiritimati"
    pages = [root.get("/admin/oauth/apikey/"), root.get(f"/admin/oauth/apikey/{key.pk}/change/")]
    for zone, day, time in (
        ("Pacific/Kiritimati", "0001-01-01", "00:00"),
        ("Etc/GMT+12", "9999-12-31", "23:59"),
        ("America/New_York", "2026-03-08", "02:30"),
    ):
        root.cookies[ZONE_COOKIE] = zone
        span = {"after_0": day, "after_1": time, "before_0": day, "before_1": time, "kinds": "*"}
        form = {"name": "x", "scopes": "read", "owner": user.pk, "expires_at_0": day, "expires_at_1": time}
        pages += [
            *(root.post(replay, span), root.post("/admin/oauth/apikey/add/", form)),
            root.get(f"/admin/books/book/changes/?since={day}T{time}&until={day}T{time}"),
            root.get(f"/admin/books/book/?added_since={day}"),
        ]
    assert {page.status_code for page in pages} == {200}


def test_filters_take_times_of_the_readers_zone(root: Client) -> None:
    """2026-01-30 15:30 in UTC is half past midnight of the next day in Tokyo."""
    book = changes.create_book(build_book(), find_anybody(), now=datetime(2026, 1, 30, 15, 30, tzinfo=UTC))
    root.cookies[ZONE_COOKIE] = "Asia/Tokyo"
    assert "31 Jan 2026, 00:30:00 JST" in read_text(root.get("/admin/books/book/changes/?since=2026-01-31T00:30"))
    assert "No change matches." in read_text(root.get("/admin/books/book/changes/?since=2026-01-31T00:31"))
    assert "<bdi>31 Jan 2026</bdi></td>" in read_text(root.get("/admin/books/book/?added_since=2026-01-31"))
    assert "No book matches." in read_text(root.get("/admin/books/book/?added_since=2026-02-01"))
    assert "31 Jan 2026, 00:30:00 JST" in read_text(root.get(f"/admin/books/book/{book.id}/change/"))
