"""What is answered before Django's handler is answered as Django does, to the byte, and by nobody who must be known."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import httpx
import pytest
from django.conf import LazySettings
from django.db import OperationalError
from hypothesis import given
from hypothesis import strategies as st

from library_site.http.fast_path import Answer, FastRoute, PendingRead, try_fast_path
from library_site.http.versions import VERSIONS
from tests.support.applications import Way
from tests.support.books import new_book
from tests.support.strategies import thorough

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

ID = {"X-Request-ID": "one-and-the-same"}


@pytest.fixture(scope="session")
def without_front(application: "WSGIApplication") -> "WSGIApplication":
    return Way(compiled=False).application


@pytest.fixture
def plain(api: httpx.Client, without_front: "WSGIApplication") -> Iterator[httpx.Client]:
    """A client of the application in which Django answers all."""
    with httpx.Client(transport=httpx.WSGITransport(app=without_front), base_url="http://127.0.0.1") as client:
        yield client


def same(api: httpx.Client, plain: httpx.Client, address: str, headers: dict[str, str] | None = None) -> httpx.Response:
    """The answer of both. It is asked for twice, since the first is what the second is learned from."""
    expected, *answers = (client.get(address, headers={**ID, **(headers or {})}) for client in (plain, api, api))
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
        api.post("/api/books", json=new_book(title=f"Über {number} 📖"))
    same(api, plain, address)


@pytest.mark.parametrize(
    "written",
    ["{}", "{}/", "0{}", "+{}", "-{}", "{}?", "{}?x=1", "{}?version=2", "{}.0", "{}%20", "0", "9" * 18, "9" * 19],
)
@pytest.mark.parametrize("home", ["/api", "/api/v1", "/api/v2", "/api/v3"])
def test_a_book_is_the_same(api: httpx.Client, plain: httpx.Client, home: str, written: str) -> None:
    book = api.post("/api/books", json=new_book(title="Über 📖")).json()
    same(api, plain, f"{home}/books/{written.format(book['id'])}")


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
    book = api.post("/api/books", json=new_book()).json()
    same(api, plain, address.format(book["id"]))
    same(api, plain, address.format(book["id"]), headers)


numbers = st.integers(-2, 600).map(str) | st.sampled_from(["", "01", "1 ", "+1", "x", "9" * 20, "%31"])
queries = st.lists(st.tuples(st.sampled_from(["skip", "limit", "author", "version", "x"]), numbers), max_size=3)
paths = st.sampled_from(["/books", "/books/", "/books/{}", "/books/0", "/books/{}/", "/books//{}"])
homes = st.sampled_from(["/api", "/api/v1", "/api/v2"])
some_headers = st.lists(st.sampled_from(HEADERS), max_size=2)


@thorough
@given(home=homes, path=paths, query=queries, headers=some_headers)
def test_whatever_is_asked_is_answered_the_same(
    api: httpx.Client, plain: httpx.Client, home: str, path: str, query: list[tuple[str, str]], headers: list[Any]
) -> None:
    books = api.get("/api/books?limit=1").json() or [api.post("/api/books", json=new_book()).json()]
    written = "&".join(f"{name}={value}" for name, value in query)
    address = f"{home}{path.format(books[0]['id'])}{'?' if written else ''}{written}"
    same(api, plain, address, {name: value for one in headers for name, value in one.items()})


def test_a_change_is_seen_at_once(api: httpx.Client, plain: httpx.Client) -> None:
    book = api.post("/api/v2/books", json=new_book()).json()
    same(api, plain, f"/api/v2/books/{book['id']}")
    api.patch(f"/api/v2/books/{book['id']}", json={"title": "Otherwise"})
    assert same(api, plain, f"/api/v2/books/{book['id']}").json()["title"] == "Otherwise"
    api.delete(f"/api/v2/books/{book['id']}")
    assert same(api, plain, f"/api/v2/books/{book['id']}").status_code == 404


class Django:
    """Stands where its handler is, and counts how often it is asked."""

    def __init__(self, *headers: tuple[str, str]) -> None:
        self.asked, self.headers = 0, [("Content-Type", "application/json"), ("Content-Length", "2"), *headers]

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        self.asked += 1
        start_response("200 OK", self.headers)
        return [b"{}"]


def two(*_: str) -> PendingRead:
    return lambda: Answer(b"{}")


def asked_of(django: Django, *requests: dict[str, str], question: FastRoute = two) -> int:
    """How often Django is asked in the end."""
    version = replace(VERSIONS[1])
    version.__dict__["fast_routes"] = [question]
    application = try_fast_path(django)
    always = {
        "REQUEST_METHOD": "GET", "PATH_INFO": "/api/books", "QUERY_STRING": "", "HTTP_HOST": "127.0.0.1",
        "library.version": version, "library.refusal": "", "wsgi.url_scheme": "http",
    }  # fmt: skip
    for request in requests:
        list(application({**always, **request}, lambda *_: lambda _: None))
    return django.asked


def test_django_is_asked_once() -> None:
    assert asked_of(Django(), {}, {}, {"HTTP_ACCEPT": "application/json"}, {"HTTP_USER_AGENT": "wget"}) == 1


@pytest.mark.parametrize(
    "unusual",
    [
        {"REQUEST_METHOD": "HEAD"},
        {"REQUEST_METHOD": "POST"},
        {"HTTP_AUTHORIZATION": ""},
        {"HTTP_COOKIE": "a=b"},
        {"HTTP_IF_NONE_MATCH": "*"},
        {"HTTP_ORIGIN": "https://shop.example"},
        {"HTTP_NEVER_HEARD_OF": "1"},
        {"HTTP_ACCEPT": "text/html"},
        {"HTTP_HOST": "evil.example"},
        {"CONTENT_LENGTH": "5"},
        {"SCRIPT_NAME": "/library"},
        {"HTTP_X_FORWARDED_PROTO": "https"},
        {"library.refusal": "No such version."},
    ],
)
def test_of_an_unusual_request_django_is_asked(unusual: dict[str, str]) -> None:
    assert asked_of(Django(), {}, {}, unusual) == 2


def test_callers_cannot_have_it_learn_more_and_more() -> None:
    strange = {"HTTP_X_FORWARDED_PROTO": "a protocol of my own"}
    assert asked_of(Django(), strange, strange, strange) == 3


def test_an_answer_that_tells_of_more_is_djangos() -> None:
    assert asked_of(Django(("RateLimit", '"default";r=9;t=60')), {}, {}, {}) == 3


def test_protected_books_are_left_to_django(settings: LazySettings) -> None:
    routes = [route for version in VERSIONS.values() for route in version.fast_routes]
    assert any(route("/books/1", "") for route in routes)
    settings.LIBRARY_ACCESS = "protected"
    assert not any(route(path, "") for route in routes for path in ("/books", "/books/1"))


@pytest.mark.parametrize("failure", [OperationalError, RuntimeError])
@pytest.mark.django_db
def test_a_failure_is_djangos_to_tell(failure: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> NoReturn:
        raise failure

    monkeypatch.setattr("django.db.connection.close", lambda: None)
    assert asked_of(Django(), {}, {}, question=lambda *_: fail) == 2
