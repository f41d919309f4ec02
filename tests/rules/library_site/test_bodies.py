"""What a request leaves behind: no body, and no garbage that refers to one."""

import gc
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest
from django.http import HttpRequest

from library_site.http.handlers import LibraryRequest
from library_site.http.middleware import BodyMiddleware
from library_site.http.transfer.bodies import PART_SIZE

Post = Callable[[bytes], "Response"]


class Response:
    """Refers to its request, which refers to it, as a view and its request do."""

    def __init__(self, request: Any) -> None:
        self.stream, self.content = request.META["wsgi.input"], request.body
        self.request, request.response = request, self


class RecordingStream(BytesIO):
    """Records the largest part that was requested."""

    largest_size = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.largest_size = max(self.largest_size, size or 0)
        return super().read(size)


def build_request(stream: Any, **environ: Any) -> HttpRequest:
    environ = {"REQUEST_METHOD": "POST", "wsgi.input": stream, "wsgi.input_terminated": True, **environ}
    setup_testing_defaults(environ)
    return LibraryRequest(environ)


@pytest.fixture
def post() -> Iterator[Post]:
    """Posts to a view that collects garbage only when it decides to."""
    middleware = BodyMiddleware(Response)
    gc.disable()
    yield lambda body: middleware(build_request(BytesIO(body)))
    gc.enable()


def test_a_body_is_read_whole_and_in_parts(post: Post) -> None:
    for size in (0, 1, PART_SIZE, PART_SIZE + 1, 2**20):
        body = bytes(range(256)) * (size // 256) + b"a" * (size % 256)
        assert post(body).content == body, size
    stream = RecordingStream(bytes(2**20))
    BodyMiddleware(Response)(build_request(stream))
    assert stream.largest_size <= PART_SIZE


def test_nobody_reads_behind_the_length_of_a_body() -> None:
    """PEP 3333 lets a server keep the connection open there."""
    for length, expected in {"3": b"abc", "": b""}.items():
        stream = BytesIO(b"abcdef")
        request = build_request(stream, **{"wsgi.input_terminated": False, "CONTENT_LENGTH": length})
        assert (BodyMiddleware(Response)(request).content, stream.tell()) == (expected, len(expected))


def test_a_body_can_be_read_like_any_of_django() -> None:
    """REST framework reads the request, Django's forms its body."""

    def respond(request: Any) -> tuple[bytes, bytes]:
        return request.read(), request.body

    assert BodyMiddleware(respond)(build_request(BytesIO(b"abc"))) == (b"abc", b"abc")


def test_a_body_is_freed_when_its_request_is_closed(post: Post) -> None:
    response = post(b"{}")
    response.request.close()
    assert response.stream.closed
    assert "_body" not in vars(response.request)
