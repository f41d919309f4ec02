"""The body of an answer, and the moment when the server is done with it."""

from collections.abc import Callable, Iterable, Iterator


def watched(body: Iterable[bytes], done: Callable[[], None]) -> Iterable[bytes]:
    """The body, with `done` to be called when it is closed. A list is whole already, and servers close none."""
    if not isinstance(body, list):
        return Watched(body, done)
    done()
    return body


class Watched:
    __slots__ = ("body", "done")

    def __init__(self, body: Iterable[bytes], done: Callable[[], None]) -> None:
        self.body = body
        self.done = done

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.body)

    def close(self) -> None:
        """Called by the server, also where a client has gone (PEP 3333)."""
        try:
            if hasattr(self.body, "close"):
                self.body.close()
        finally:
            self.done()
