"""A librarian uploads files that fill the memory of their reader or keep it busy, while others read and write books."""

import re
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from threading import Event, Thread
from typing import NamedTuple

import httpx

from benchmarks import competitors
from benchmarks.deliveries import LIBRARIES_BY_DATABASE, Library, WaitTimedOut, stop_workers, wait_until
from benchmarks.operations import read_peak, start_worker
from benchmarks.outages.running_writers import SEEDED_BOOK_COUNT, fill, note_errors
from benchmarks.support import load, writers
from benchmarks.support.arguments import note
from benchmarks.support.findings import Finding
from tests.support.hostile_files import HOSTILE_FILES, claim_dimension, number_row

# A record may have a million characters.
SIZE = 900_000
OTHER_SIZES: dict[Callable[[int], bytes], int] = {number_row: 2_000_000_000, claim_dimension: 1_048_576}
WRITER_COUNT, PROBE_PAUSE = 2, 0.1
SETTINGS = {"LIBRARY_ACCESS": "open", "WEB_CONCURRENCY": "1", "WEB_THREADS": "8"}
# Seconds within which every page and book, and /livez, must be answered, and after which a request is given up.
ANSWER_LIMIT, ALIVE_LIMIT, TIMEOUT = 8.0, 2.0, 30.0
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


class Watch:
    """Asks for an address again and again. An answer that does not come counts as one after TIMEOUT seconds."""

    def __init__(self, url: str, limit: float) -> None:
        self.url, self.limit = url, limit
        self.slowest = 0.0

    def run(self, stop: Event) -> None:
        with httpx.Client(timeout=TIMEOUT) as client:
            while not stop.wait(PROBE_PAUSE):
                start = time.perf_counter()
                try:
                    client.get(self.url)
                except httpx.HTTPError:
                    self.slowest = max(self.slowest, TIMEOUT)
                self.slowest = max(self.slowest, time.perf_counter() - start)


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
    with (
        competitors.start_quiet_library(library.url, **library.environment | SETTINGS) as server,
        run_worker(library) as pid,
    ):
        url = f"http://127.0.0.1:{server.port}"
        watches = [Watch(f"{url}/livez", ALIVE_LIMIT), Watch(f"{url}/api/v2/books/1", ANSWER_LIMIT)]
        with writers.run_writers(url, WRITER_COUNT) as running, run_watches(watches):
            visits = dict(iter_visits(Librarian(url, session, library)))
        servers = load.iter_process_tree(server.pid, list(load.iter_processes()))
        megabytes = max(map(read_peak, [pid, *(process.pid for process in servers)]))
    note_errors(running)
    return build_finding(database, visits, watches, megabytes, running, library)


@contextmanager
def run_worker(library: Library) -> Iterator[int]:
    worker = start_worker(library)
    try:
        yield worker.pid
    finally:
        stop_workers([worker])


@contextmanager
def run_watches(watches: list[Watch]) -> Iterator[None]:
    stop = Event()
    threads = [Thread(target=watch.run, args=[stop]) for watch in watches]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def iter_visits(librarian: Librarian) -> Iterator[tuple[str, Visit]]:
    """Yields the name of each file, and what became of it; none after one that stopped the server."""
    for format, builders in HOSTILE_FILES.items():
        for build in builders:
            visit = librarian.visit(f"{build.__name__}.{format}", build(OTHER_SIZES.get(build, SIZE)))
            if visit.is_wrong:
                note(f"  {build.__name__}: {visit.outcome} after {visit.seconds:.1f} s")
            yield build.__name__, visit
            # A server that does not answer any more costs TIMEOUT seconds for each page.
            if visit.seconds >= TIMEOUT:
                return


def build_finding(
    database: str,
    visits: dict[str, Visit],
    watches: list[Watch],
    megabytes: float,
    running: list[writers.Writer],
    library: Library,
) -> Finding:
    outcomes = [visit.outcome for visit in visits.values()]
    times = ", ".join(f"{watch.url.rpartition('/')[2]} {watch.slowest:.1f}" for watch in watches)
    slowest = max(visit.seconds for visit in visits.values())
    result = (
        f"{outcomes.count('checked')} read and checked, the others refused; the slowest answers in s: pages"
        f" {slowest:.1f}, {times}; {megabytes:.0f} MB; {writers.summarize_writes(library.execute_sql, running)}"
    )
    late = sum(visit.is_wrong for visit in visits.values()) + sum(watch.slowest > watch.limit for watch in watches)
    wrong = writers.count_wrong(library.execute_sql, running, SEEDED_BOOK_COUNT)
    return Finding(f"{len(visits)} hostile files, {database}", result, late + (megabytes > MAX_MEGABYTES) + wrong)
