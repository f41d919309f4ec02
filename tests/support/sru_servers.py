"""A catalogue on this machine that speaks SRU; each test decides what it answers."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from xml.sax.saxutils import escape

from tests.support.receivers import respond_with, run_server

ISBN = "9780141439587"
EMMA = {
    "245a": "Emma /",
    "100a": "Austen, Jane,",
    "264c": "1815.",
    "020a": "978-0-14-143958-7 (pbk.) :",
    "655a": "Novel.",
}
XML = "application/xml"


class Catalogue(ThreadingHTTPServer):
    """Keeps the addresses that it was asked for. `answer` writes the response with the methods of the handler."""

    daemon_threads = True

    def __init__(self, response: Callable[[Any], None]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = response
        self.paths: list[str] = []
        self.is_closing = threading.Event()

    @property
    def template(self) -> str:
        """What SRU_SERVERS has of it."""
        query = "version=1.1&operation=searchRetrieve&maximumRecords=5&recordSchema=marcxml&query=bath.isbn%3D{isbn}"
        return f"http://127.0.0.1:{self.server_port}/sru?{query}"


class Handler(BaseHTTPRequestHandler):
    server: Catalogue

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        # Who has read enough closes the connection.
        with suppress(OSError):
            self.server.answer(self)

    def log_message(self, *_: Any) -> None:
        """Writes nothing: the log does not belong in the output of tests."""


@contextmanager
def start_catalogue(response: Callable[[Any], None]) -> Iterator[Catalogue]:
    with run_server(Catalogue(response)) as catalogue:
        yield catalogue
        catalogue.is_closing.set()


def respond_with_records(*records: str) -> Callable[[Any], None]:
    return respond_with(200, build_response(*records), Content_Type=XML)


def drip(handler: Any) -> None:
    """Answers without an end, a byte now and then."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n<")
    while not handler.server.is_closing.wait(0.02):
        handler.wfile.write(b" ")


def stay_silent(handler: Any) -> None:
    handler.server.is_closing.wait()


def flood(handler: Any) -> None:
    """Answers with 10 GB."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
    while True:
        handler.wfile.write(b" " * 2**16)


def build_response(*records: str, diagnostics: str = "") -> bytes:
    """A response of SRU 1.1 with these records."""
    wrapped = "".join(
        "<srw:record><srw:recordSchema>marcxml</srw:recordSchema><srw:recordPacking>xml</srw:recordPacking>"
        f"<srw:recordData>{record}</srw:recordData></srw:record>"
        for record in records
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<srw:searchRetrieveResponse xmlns:srw="http://www.loc.gov/zing/srw/"><srw:version>1.1</srw:version>'
        f"<srw:numberOfRecords>{len(records)}</srw:numberOfRecords><srw:records>{wrapped}</srw:records>{diagnostics}"
        "</srw:searchRetrieveResponse>"
    ).encode()


def build_record(**fields: str) -> str:
    """A MARCXML record of EMMA, with these texts by tag and code in place of its own; without those that are empty."""
    texts = {**EMMA, **{name.removeprefix("m"): text for name, text in fields.items()}}
    subfields = "".join(
        f'<datafield tag="{name[:3]}"><subfield code="{name[3]}">{escape(text)}</subfield></datafield>'
        for name, text in texts.items()
        if text
    )
    return (
        f'<record xmlns="http://www.loc.gov/MARC21/slim"><leader>00000nam a2200000 a 4500</leader>{subfields}</record>'
    )


DIAGNOSTICS = (
    '<srw:diagnostics><diagnostic xmlns="http://www.loc.gov/zing/srw/diagnostic/"><uri>info:srw/diagnostic/1/16</uri>'
    "<details>bath.isbn</details><message>Unsupported  index</message></diagnostic></srw:diagnostics>"
)
