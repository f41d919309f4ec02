"""What a request leaves behind: no body, and no garbage that refers to one."""

import gc
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any
from weakref import ref
from wsgiref.util import setup_testing_defaults

import pytest

from library_site.http.transfer.bodies import COLLECTION_SIZE, PART_SIZE, buffer_body

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

Post = Callable[[bytes], "Response"]


class Response:
    """Refers to its request, which refers to it, as a view and its request do."""

    def __init__(self, environ: "WSGIEnvironment") -> None:
        self.stream: BytesIO = environ["wsgi.input"]
        self.content = self.stream.read()
        environ["response"] = self
        self.environ = environ

    def __iter__(self) -> Iterator[bytes]:
        yield b""


class RecordingStream(BytesIO):
    """Records the largest part that was requested."""

    largest_size = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.largest_size = max(self.largest_size, size or 0)
        return super().read(size)


def respond(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    return Response(environ)


def send(application: Any, stream: BytesIO) -> Response:
    """Returns the response after the server has closed it."""
    environ: dict[str, Any] = {"REQUEST_METHOD": "POST", "wsgi.input": stream}
    setup_testing_defaults(environ)
    application(environ, lambda *_: lambda _: None).close()
    response: Response = environ["response"]
    return response


@pytest.fixture
def post() -> Iterator[Post]:
    """Posts to an application that collects garbage only when it decides to."""
    application = buffer_body(respond)
    gc.disable()
    yield lambda body: send(application, BytesIO(body))
    gc.enable()


def test_a_body_is_read_whole_and_in_parts(post: Post) -> None:
    for size in (0, 1, PART_SIZE, PART_SIZE + 1, 2**20):
        body = bytes(range(256)) * (size // 256) + b"a" * (size % 256)
        assert post(body).content == body, size
    stream = RecordingStream(bytes(2**20))
    send(buffer_body(respond), stream)
    assert stream.largest_size <= PART_SIZE


def test_a_body_is_freed_after_its_answer(post: Post) -> None:
    assert post(b"{}").stream.closed


@pytest.mark.parametrize(("size", "is_collected"), [(COLLECTION_SIZE // 4 - 1, False), (COLLECTION_SIZE // 4, True)])
def test_garbage_is_collected_after_so_many_bytes_of_bodies(post: Post, size: int, is_collected: bool) -> None:
    response = ref(post(bytes(size)))
    for _ in range(3):
        assert response()
        post(bytes(size))
    assert (response() is None) == is_collected
