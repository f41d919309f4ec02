"""A librarian uploads files that fill the memory of their reader or keep it busy, while others read and write books."""

import re
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from typing import NamedTuple

import httpx

from benchmarks.deliveries import LIBRARIES_BY_DATABASE, Library, WaitTimedOut, stop_workers, wait_until
from benchmarks.operations import read_peak, start_worker
from benchmarks.outages.running_writers import (
    ALIVE_LIMIT,
    ANSWER_LIMIT,
    PROBE_PAUSE,
    TIMEOUT,
    Watch,
    build_finding,
    count_late,
    fill,
    run_watches,
    serve_writers,
)
from benchmarks.support import load
from benchmarks.support.arguments import note
from benchmarks.support.findings import Finding
from tests.support.hostile_files import HOSTILE_FILES, claim_dimension, number_row

# A record may have a million characters.
SIZE = 900_000
OTHER_SIZES: dict[Callable[[int], bytes], int] = {number_row: 2_000_000_000, claim_dimension: 1_048_576}
WRITER_COUNT = 2
SETTINGS = {"LIBRARY_ACCESS": "open", "WEB_CONCURRENCY": "1", "WEB_THREADS": "8"}
# Seconds for which a worker may read one file, and the memory that the server and a worker may need.
READ_LIMIT, MAX_MEGABYTES = 120.0, 600
IMPORT = "/admin/books/book/import/"
SESSION_CODE = """
from django.contrib.auth.models import Group, User
from django.test import Client
user = User.objects.create_user("head", is_staff=True)
user.groups.set(Group.objects.filter(name__in=["Librarians", "Head librarians"]))
client = Client()
client.force_login(user)
print(client.cookies["sessionid"].value)
"""
UNFINISHED_SQL = "SELECT count(*) FROM books_operation WHERE state IN ('waiting', 'running')"
FORM_FIELD = re.compile('name="column_isbn".*?</select>', re.DOTALL)
OPTION = re.compile('<option value="([^"]+)"')


class Visit(NamedTuple):
    """What became of a file, and the seconds of the answer of its pages that took longest."""

    outcome: str
    seconds: float
    is_wrong: bool = False


class Librarian:
    def __init__(self, url: str, session: str, library: Library) -> None:
        self.client = httpx.Client(base_url=url, timeout=TIMEOUT, cookies={"sessionid": session})
        self.library = library
        self.slowest = 0.0

    def visit(self, name: str, content: bytes) -> Visit:
        """Uploads a file, and checks it if its columns can be chosen."""
        self.slowest = 0.0
        try:
            outcome = self.upload(name, content)
        except (httpx.HTTPError, WaitTimedOut) as error:
            return Visit(type(error).__name__, self.slowest, is_wrong=True)
        return Visit(outcome, self.slowest, is_wrong=self.slowest > ANSWER_LIMIT)

    def upload(self, name: str, content: bytes) -> str:
        self.request("GET", IMPORT)
        answer = self.request("POST", IMPORT, files={"file": (name, content)})
        mapping = answer.headers.get("Location", "")
        if not mapping.endswith("/mapping/"):
            return "refused at once"
        page = self.wait_for_form(mapping)
        if not page:
            return "refused"
        [field] = FORM_FIELD.findall(page)
        columns = OPTION.findall(field)
        if not columns:
            return "refused"
        rules = {"column_isbn": unescape(columns[0]), "match_by": "isbn", "on_match": "leave", "on_none": "leave"}
        self.request("POST", mapping, data=rules)
        wait_until(self.has_finished, READ_LIMIT)
        return "checked"

    def wait_for_form(self, address: str) -> str:
        """Returns the page with the form of columns, "" if the file is refused. A worker may look into it first."""
        deadline = time.monotonic() + READ_LIMIT
        while time.monotonic() < deadline:
            answer = self.request("GET", address)
            if answer.status_code != 200:
                return ""
            if FORM_FIELD.search(answer.text):
                return answer.text
            if self.has_finished() and not FORM_FIELD.search(self.request("GET", address).text):
                return ""
            time.sleep(PROBE_PAUSE)
        raise WaitTimedOut

    def has_finished(self) -> bool:
        return bool(self.library.execute_sql(UNFINISHED_SQL)[0][0] == 0)

    def request(self, method: str, address: str, **options: object) -> httpx.Response:
        """Raises httpx.HTTPError, also for a failure of the server."""
        headers = {"X-CSRFToken": self.client.cookies.get("csrftoken", "")}
        start = time.perf_counter()
        try:
            answer = self.client.request(method, address, headers=headers, **options)  # type: ignore[arg-type]
        finally:
            self.slowest = max(self.slowest, time.perf_counter() - start)
        if answer.status_code in (403, 500) or "login" in answer.headers.get("Location", ""):
            raise httpx.HTTPStatusError(f"{answer.status_code}", request=answer.request, response=answer)
        return answer


def check_hostile_files(options: Namespace) -> Iterator[Finding]:
    for database, create_library in LIBRARIES_BY_DATABASE.items():
        with create_library() as library:
            fill(library)
            yield upload_all(database, library)


def upload_all(database: str, library: Library) -> Finding:
    session = library.run_code(SESSION_CODE).strip()
    settings = library.environment | SETTINGS
    with run_worker(library) as pid, serve_writers(library.url, WRITER_COUNT, **settings) as (server, running):
        url = f"http://127.0.0.1:{server.port}"
        watches = [Watch(f"{url}/livez", ALIVE_LIMIT), Watch(f"{url}/api/v2/books/1", ANSWER_LIMIT)]
        with run_watches(watches):
            visits = list(iter_visits(Librarian(url, session, library)))
        servers = load.iter_process_tree(server.pid, list(load.iter_processes()))
        megabytes = max(map(read_peak, [pid, *(process.pid for process in servers)]))
    outcomes = [visit.outcome for visit in visits]
    waits = f"pages {max(visit.seconds for visit in visits):.1f}, {', '.join(map(str, watches))}"
    result = (
        f"{outcomes.count('checked')} files read and checked, the others refused; the slowest answers in s: {waits}"
    )
    wrong = sum(visit.is_wrong for visit in visits) + count_late(watches) + (megabytes > MAX_MEGABYTES)
    fault = f"{len(visits)} hostile files, {database}"
    return build_finding(fault, library.url, running, result, f"{megabytes:.0f} MB", wrong=wrong)


@contextmanager
def run_worker(library: Library) -> Iterator[int]:
    worker = start_worker(library)
    try:
        yield worker.pid
    finally:
        stop_workers([worker])


def iter_visits(librarian: Librarian) -> Iterator[Visit]:
    """Yields what became of each file; none after one that stopped the server."""
    for format, builders in HOSTILE_FILES.items():
        for build in builders:
            visit = librarian.visit(f"{build.__name__}.{format}", build(OTHER_SIZES.get(build, SIZE)))
            if visit.is_wrong:
                note(f"  {build.__name__}: {visit.outcome} after {visit.seconds:.1f} s")
            yield visit
            # A server that does not answer any more costs TIMEOUT seconds for each page.
            if visit.seconds >= TIMEOUT:
                return
