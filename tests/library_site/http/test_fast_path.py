"""The fast path answers as Django does, to the byte, and leaves what it cannot tell for sure to Django."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import httpx
import pytest
from django.conf import LazySettings
from django.db import OperationalError
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import NotAuthenticated

from books.writing.changes import BookNotFound
from library_site.db.timeouts import WriterRefused
from library_site.http.fast_path import (
    FAILURE_KEY,
    Action,
    Answer,
    FastRequest,
    FastRoute,
    is_allowed_host,
    try_fast_path,
)
from library_site.http.versions import VERSIONS
from tests.support.applications import ApplicationVariant
from tests.support.books import build_book
from tests.support.strategies import hypothesis_settings

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

pytestmark = pytest.mark.database_independent

REQUEST_ID = {"X-Request-ID": "one-and-the-same"}


@pytest.fixture(scope="session")
def django_application(application: "WSGIApplication") -> "WSGIApplication":
    return ApplicationVariant(compiled=False).application


@pytest.fixture
def plain(api: httpx.Client, django_application: "WSGIApplication") -> Iterator[httpx.Client]:
    """A client of an application in which Django answers every request."""
    with httpx.Client(transport=httpx.WSGITransport(app=django_application), base_url="http://127.0.0.1") as client:
        yield client


def check_equal_answers(
    api: httpx.Client, plain: httpx.Client, address: str, headers: dict[str, str] | None = None
) -> httpx.Response:
    """Checks that both applications answer the same, and returns the answer.

    Sends the request to the fast path twice: the second answer is made with what the first one taught it.
    """
    expected, *answers = (
        client.get(address, headers={**REQUEST_ID, **(headers or {})}) for client in (plain, api, api)
    )
    for answer in answers:
        assert answer.status_code == expected.status_code
        assert answer.headers.raw == expected.headers.raw
        assert answer.content == expected.content
    return expected


ADDRESSES = [
    "/api/books", "/api/books/", "/api/books?", "/api/books?limit=2", "/api/books?skip=1&limit=1",
    "/api/books?limit=1&skip=1",
    "/api/books?limit=0", "/api/books?limit=500", "/api/books?limit=501", "/api/books?limit=01", "/api/books?limit=",
    "/api/books?limit=1&limit=2", "/api/books?skip=-1", "/api/books?skip=999999999", "/api/books?skip=9999999999",
    "/api/books?skip=%31", "/api/books?skip=1&", "/api/books?&skip=1", "/api/books?author=a", "/api/books?version=2",
    "/api/books?version=1&limit=1", "/api/books?limit=1&x=1", "/api/v1/books?limit=1", "/api/v2/books?limit=1",
    "/api/books?skip=٣", "/api/books?limit=1;skip=1", "/api/books?limit=1+", "/api/books?limit=1#x",
]  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_list_is_the_same(api: httpx.Client, plain: httpx.Client, address: str) -> None:
    for number in range(3):
        api.post("/api/books", json=build_book(title=f"Über {number} 📖"))
    check_equal_answers(api, plain, address)


@pytest.mark.parametrize(
    "spelling",
    ["{}", "{}/", "0{}", "+{}", "-{}", "{}?", "{}?x=1", "{}?version=2", "{}.0", "{}%20", "0", "9" * 18, "9" * 19],
)
@pytest.mark.parametrize("prefix", ["/api", "/api/v1", "/api/v2", "/api/v3"])
def test_a_book_is_the_same(api: httpx.Client, plain: httpx.Client, prefix: str, spelling: str) -> None:
    book = api.post("/api/books", json=build_book(title="Über 📖")).json()
    check_equal_answers(api, plain, f"{prefix}/books/{spelling.format(book['id'])}")


HEADERS: list[dict[str, str]] = [
    {"Accept": "application/json"}, {"Accept": "text/html"}, {"Accept": "application/vnd.library.v2+json"},
    {"Accept": "application/vnd.library.v9+json"}, {"Accept": "image/png"}, {"Accept": ""},
    {"Authorization": "Bearer nonsense"}, {"Authorization": ""}, {"X-API-Key": "nonsense"}, {"Cookie": "sessionid=x"},
    {"If-None-Match": "*"}, {"If-Match": '"x"'}, {"If-Match": "*"}, {"Range": "bytes=0-1"}, {"Origin": "https://x.example"},
    {"Host": "evil.example"}, {"Host": "127.0.0.1:8000"}, {"Host": "localhost"}, {"Host": "127.0.0.1:x"},
    {"X-Forwarded-Proto": "https"}, {"X-Forwarded-Proto": "x"}, {"X-Forwarded-Host": "evil.example"},
    {"X-Forwarded-For": "192.0.2.1"},
    {"Content-Type": "application/json"}, {"Content-Type": "text/plain"}, {"Content-Length": "0"},
    {"X-HTTP-Method-Override": "DELETE"}, {"Accept-Language": "de"}, {"Connection": "close"}, {"X-Strange": "1"},
]  # fmt: skip


@pytest.mark.parametrize("headers", HEADERS)
@pytest.mark.parametrize("address", ["/api/books/{}", "/api/v2/books/{}", "/api/books?limit=1"])
def test_callers_are_answered_the_same(
    api: httpx.Client, plain: httpx.Client, address: str, headers: dict[str, str]
) -> None:
    book = api.post("/api/books", json=build_book()).json()
    check_equal_answers(api, plain, address.format(book["id"]))
    check_equal_answers(api, plain, address.format(book["id"]), headers)


numbers = st.integers(-2, 600).map(str) | st.sampled_from(["", "01", "1 ", "+1", "x", "9" * 20, "%31"])
queries = st.lists(st.tuples(st.sampled_from(["skip", "limit", "author", "version", "x"]), numbers), max_size=3)
paths = st.sampled_from(["/books", "/books/", "/books/{}", "/books/0", "/books/{}/", "/books//{}"])
prefixes = st.sampled_from(["/api", "/api/v1", "/api/v2"])
some_headers = st.lists(st.sampled_from(HEADERS), max_size=2)


@hypothesis_settings
@given(prefix=prefixes, path=paths, query=queries, headers=some_headers)
def test_every_request_is_answered_the_same(
    api: httpx.Client, plain: httpx.Client, prefix: str, path: str, query: list[tuple[str, str]], headers: list[Any]
) -> None:
    books = api.get("/api/books?limit=1").json() or [api.post("/api/books", json=build_book()).json()]
    query_string = "&".join(f"{name}={value}" for name, value in query)
    address = f"{prefix}{path.format(books[0]['id'])}{'?' if query_string else ''}{query_string}"
    check_equal_answers(api, plain, address, {name: value for header in headers for name, value in header.items()})


def test_a_change_is_seen_at_once(api: httpx.Client, plain: httpx.Client) -> None:
    book = api.post("/api/v2/books", json=build_book()).json()
    check_equal_answers(api, plain, f"/api/v2/books/{book['id']}")
    api.patch(f"/api/v2/books/{book['id']}", json={"title": "Otherwise"})
    assert check_equal_answers(api, plain, f"/api/v2/books/{book['id']}").json()["title"] == "Otherwise"
    api.delete(f"/api/v2/books/{book['id']}")
    assert check_equal_answers(api, plain, f"/api/v2/books/{book['id']}").status_code == 404


@pytest.mark.parametrize("prefix", ["/api", "/api/v2"])
@pytest.mark.parametrize("first", ["books/0", "books/0/", "books?limit=0"])
def test_nothing_is_learned_from_a_refusal(api: httpx.Client, plain: httpx.Client, prefix: str, first: str) -> None:
    book = api.post("/api/books", json=build_book()).json()
    application = ApplicationVariant(compiled=True).application
    with httpx.Client(transport=httpx.WSGITransport(app=application), base_url="http://127.0.0.1") as fresh:
        assert fresh.get(f"{prefix}/{first}").is_client_error
        check_equal_answers(fresh, plain, f"{prefix}/books/{book['id']}")
        check_equal_answers(fresh, plain, f"{prefix}/books?limit=1")


class DjangoHandler:
    """Replaces Django's handler and counts its calls. It refuses the first ones, if it is to refuse any."""

    def __init__(self, *headers: tuple[str, str], refusals: int = 0) -> None:
        self.calls, self.headers = 0, [("Content-Type", "application/json"), ("Content-Length", "2"), *headers]
        self.refusals = refusals

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        self.calls += 1
        if self.calls > self.refusals:
            start_response("200 OK", self.headers)
        else:
            start_response("401 Unauthorized", [*self.headers, ("WWW-Authenticate", "Bearer")])
        return [b"{}"]


PLAIN_ENVIRON = {
    "REQUEST_METHOD": "GET", "PATH_INFO": "/api/books", "QUERY_STRING": "", "HTTP_HOST": "127.0.0.1",
    "library.refusal": "", "wsgi.url_scheme": "http",
}  # fmt: skip


def answer_empty_object(_: FastRequest) -> Action:
    return lambda: Answer(200, {}, b"{}")


def count_django_calls(
    django: DjangoHandler, *requests: dict[str, str], fast_route: FastRoute = answer_empty_object
) -> int:
    """Sends the requests and returns how many of them Django answered."""
    version = replace(VERSIONS[1])
    version.__dict__["fast_routes"] = [fast_route]
    application = try_fast_path(django)
    for request in requests:
        list(application({**PLAIN_ENVIRON, "library.version": version, **request}, lambda *_: lambda _: None))
    return django.calls


def test_django_answers_only_the_first_request() -> None:
    assert (
        count_django_calls(DjangoHandler(), {}, {}, {"HTTP_ACCEPT": "application/json"}, {"HTTP_USER_AGENT": "wget"})
        == 1
    )


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_django_answers_until_an_answer_is_no_refusal(method: str) -> None:
    """The headers of a refusal would keep a route from the fast path for good, or come with the next answer."""
    request = {"REQUEST_METHOD": method}
    assert count_django_calls(DjangoHandler(refusals=2), request, request, request, request, request) == 3


@pytest.mark.parametrize(
    "unusual",
    [
        {"REQUEST_METHOD": "HEAD"},
        {"REQUEST_METHOD": "POST"},
        {"HTTP_COOKIE": "a=b"},
        {"HTTP_ORIGIN": "https://shop.example"},
        {"HTTP_UNKNOWN_HEADER": "1"},
        {"HTTP_ACCEPT": "text/html"},
        {"HTTP_HOST": "evil.example"},
        {"CONTENT_LENGTH": "5"},
        {"SCRIPT_NAME": "/library"},
        {"HTTP_X_FORWARDED_PROTO": "https"},
        {"library.refusal": "No such version."},
    ],
)
def test_django_answers_an_unusual_request(unusual: dict[str, str]) -> None:
    assert count_django_calls(DjangoHandler(), {}, {}, unusual) == 2


def test_callers_cannot_make_the_fast_path_remember_more_and_more() -> None:
    strange = {"HTTP_X_FORWARDED_PROTO": "a protocol of my own"}
    assert count_django_calls(DjangoHandler(), strange, strange, strange) == 3


def test_django_answers_where_the_answer_has_other_headers() -> None:
    assert count_django_calls(DjangoHandler(("RateLimit", '"default";r=9;t=60')), {}, {}, {}) == 3


def test_protected_books_are_left_to_django(settings: LazySettings) -> None:
    routes = [route for version in VERSIONS.values() for route in version.fast_routes]
    requests = [FastRequest("GET", path, "", {"PATH_INFO": f"/api{path}"}) for path in ("/books", "/books/1")]
    assert all(any(route(request) for route in routes) for request in requests)
    settings.LIBRARY_ACCESS = "protected"
    for request in requests:
        with pytest.raises(NotAuthenticated):
            [route(request) for route in routes]


def test_django_answers_where_the_answer_repeats_a_header() -> None:
    assert count_django_calls(DjangoHandler(("Vary", "Accept"), ("Vary", "Origin")), {}, {}, {}) == 3


@pytest.mark.parametrize("failure", [OperationalError, RuntimeError])
@pytest.mark.django_db
def test_django_answers_a_failure(failure: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> NoReturn:
        raise failure

    monkeypatch.setattr("django.db.connection.close", lambda: None)
    assert count_django_calls(DjangoHandler(), {}, {}, fast_route=lambda *_: fail) == 2


@pytest.mark.parametrize("failure", [WriterRefused, BookNotFound])
@pytest.mark.parametrize("is_found", [True, False])
def test_a_failure_that_would_only_come_again_is_handed_to_django(failure: type[Exception], is_found: bool) -> None:
    """So the client does not wait twice. It may fail while the operation is found, or while it runs."""
    failures: list[Exception] = []

    def django(environ: "WSGIEnvironment", _: "StartResponse") -> Iterable[bytes]:
        failures.append(environ[FAILURE_KEY])
        return []

    def fail(*_: object) -> NoReturn:
        raise failure

    def find_operation(_: FastRequest) -> Action:
        return fail if is_found else fail()

    version = replace(VERSIONS[1])
    version.__dict__["fast_routes"] = [find_operation]
    list(try_fast_path(django)({**PLAIN_ENVIRON, "library.version": version}, lambda *_: lambda _: None))
    assert [type(error) for error in failures] == [failure]


def test_callers_cannot_make_the_fast_path_remember_long_hosts() -> None:
    size = is_allowed_host.cache_info().currsize
    hosts = [{"HTTP_HOST": f"{number}{'x' * 260}"} for number in range(3)]
    assert count_django_calls(DjangoHandler(), *hosts) == 3
    assert is_allowed_host.cache_info().currsize == size


def test_a_credential_that_is_redirected_to_https_is_left_to_django(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    credential = {"HTTP_X_API_KEY": "x"}
    assert count_django_calls(DjangoHandler(), credential, credential) == 2
    secure = {**credential, "HTTP_X_FORWARDED_PROTO": "https"}
    assert count_django_calls(DjangoHandler(), secure, secure) == 1


def test_a_credential_that_is_counted_is_left_to_django(settings: LazySettings) -> None:
    credential = {"HTTP_X_API_KEY": "x"}
    settings.API_RATE_LIMIT = (100, 60)
    assert count_django_calls(DjangoHandler(), credential, credential) == 2
