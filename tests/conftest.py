"""Fixtures of all tests: clients of the application in this process, the served library, and its users."""

import gc
import json
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

import httpx
import hypothesis
import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client, TransactionTestCase
from django.test.client import ClientHandler
from django.test.utils import override_settings
from pytest_django import Settings

from books.files.reader.tasks import write_results
from books.history import actors
from books.history.actors import ActorRef
from books.search import lent_books, search_texts
from oauth.server.docs_client import sync_docs_client
from oauth.tokens import revocations
from tests.support import book_audit
from tests.support.admin_pages import create_staff
from tests.support.books import build_book
from tests.support.operations import create_head_librarian
from tests.support.server import Service, keep_migrated_database, serve_library

# They need what the recipes add (`tests/served/library_site/test_recipes.py`).
collect_ignore = [] if "RECIPES" in os.environ else ["recipes"]
# They need the app of docs/extending.md (`tests/served/library_site/test_app_beside.py`).
collect_ignore += [] if os.environ.get("DJANGO_SETTINGS_MODULE") == "tests.beside.settings" else ["beside"]
pytest_plugins = ["tests.support.program_fixtures", "tests.support.variant_fixtures"]

# No deadline: the time of an example depends on the machine.
hypothesis.settings.register_profile("suite", deadline=None, max_examples=12)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=20)
# Chosen on the command line with `--hypothesis-profile=long`.
hypothesis.settings.register_profile("long", deadline=None, max_examples=20_000)
hypothesis.settings.load_profile("thorough" if "CI" in os.environ else "suite")

# The client of the tests logs its requests, which are not the library's, where LOG_LEVEL is not set.
logging.getLogger("httpx").setLevel(logging.WARNING)

# Migrations fill these, and no test changes them.
TABLES_OF_MIGRATIONS = {"auth_permission", "django_content_type", "django_migrations"}

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication
    from pytest_django import DjangoDbBlocker


def pytest_collection_finish() -> None:
    """Excludes imported modules from garbage collection, which is a tenth of the time if it is as frequent as usual."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(500_000)


@pytest.fixture(scope="session", autouse=True)
def static_files() -> None:
    call_command("collectstatic", interactive=False, verbosity=0)


@pytest.fixture(scope="session", autouse=True)
def fast_password_hasher() -> Iterator[None]:
    """Hashes passwords with MD5, which is fast."""
    hasher = "django.contrib.auth.hashers.MD5PasswordHasher"
    with override_settings(PASSWORD_HASHERS=[hasher, *settings.PASSWORD_HASHERS]):
        yield


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Stores SQLite in a file, as in production: a database in memory locks differently."""
    if connection.vendor == "sqlite":
        file = tmp_path_factory.mktemp("database") / "test.sqlite3"
        connection.settings_dict["TEST"]["NAME"] = str(file)
        if "MIGRATED_FILE" in os.environ:
            shutil.copy(os.environ["MIGRATED_FILE"], file)


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Begins with the file that `python -m tests` has migrated for all its runs."""
    return connection.vendor == "sqlite" and "MIGRATED_FILE" in os.environ


@pytest.fixture(scope="session")
def application(static_files: None) -> "WSGIApplication":
    # WhiteNoise reads the static files when this module is imported.
    from library_site.wsgi import application

    return application


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: "DjangoDbBlocker") -> Iterator[None]:
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        keep_migrated_database()
        book_audit.install_triggers()
        tables = {*connection.introspection.django_table_names(only_existing=True)} - TABLES_OF_MIGRATIONS
        groups = [*Group.objects.all()]
        permissions = [*Group.permissions.through.objects.all()]

        def restore_database(_: TransactionTestCase) -> None:
            delete_rows(sorted(tables))
            Group.objects.bulk_create(groups)
            Group.permissions.through.objects.bulk_create(permissions)

        # Django truncates every table and makes all permissions anew, which takes 100 ms on PostgreSQL.
        patch.setattr(TransactionTestCase, "_fixture_teardown", restore_database)
        yield


def delete_rows(tables: list[str]) -> None:
    """Deletes what a test that commits has left. Foreign keys are checked at the end of the transaction."""
    connection.ensure_connection()
    if not connection.is_usable():
        connection.close()
    statements = [f"DELETE FROM {connection.ops.quote_name(table)}" for table in tables]  # noqa: S608  # our own tables
    if connection.vendor == "postgresql":
        # All in one round trip, which SQLite does not have.
        statements = ["; ".join(statements)]
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    actors.remembered_actors.clear()
    sync_docs_client()


@pytest.fixture(autouse=True)
def files_are_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process takes a quarter of a second to start. `tests/served/books/test_reader.py` starts some."""

    @contextmanager
    def run_reader_here(job: str, file: IO[bytes], *_files: IO[str]) -> Iterator[IO[bytes]]:
        with TemporaryFile() as output, open(file.fileno(), "rb", closefd=False) as stream:
            write_results(json.loads(job), stream, output)
            output.seek(0)
            yield output

    monkeypatch.setattr("books.files.reader.client.start_reader", run_reader_here)


@pytest.fixture(autouse=True)
def changes_are_announced_and_recorded(request: pytest.FixtureRequest) -> Iterator[None]:
    """Checks that each change of a book has one event and one row in the history.

    Tests with the marks `unannounced` and `unrecorded` are excepted.
    """
    database_fixture = next((name for name in ("transactional_db", "db") if name in request.fixturenames), None)
    if not database_fixture:
        yield
        return
    request.getfixturevalue(database_fixture)
    if database_fixture == "transactional_db":
        # These tests run last, and their changes stay in the ledger.
        book_audit.clear_ledger()
    yield
    if book_audit.is_untouched():
        return
    if not request.node.get_closest_marker("unannounced"):
        assert book_audit.count_events() == book_audit.count_changes()
    if not request.node.get_closest_marker("unrecorded"):
        assert book_audit.list_history() == book_audit.list_changes()
    assert (lent_books.count_differences(), search_texts.count_differences()) == (0, 0)


@pytest.fixture
def api(db: None, application: "WSGIApplication", monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A client of the whole WSGI application; its writes are rolled back."""
    # A request closes its connection at the end, also inside the transaction of a test. Disconnecting the signals that
    # do so is not enough: Django's test client connects them again where a test uses both clients.
    monkeypatch.setattr(connection, "close_if_unusable_or_obsolete", lambda: None)
    with httpx.Client(transport=httpx.WSGITransport(app=application), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def allow_private(settings: Settings) -> None:
    """Allows endpoints with private addresses: the receivers of tests are on this machine."""
    settings.WEBHOOKS_ALLOW_PRIVATE = True


@pytest.fixture
def catalogues_of_this_machine(settings: Settings) -> Iterator[None]:
    """Allows catalogues with private addresses, and forgets what they answer."""
    settings.SRU_ALLOW_PRIVATE = True
    yield
    cache.clear()


@pytest.fixture
def book(api: httpx.Client) -> dict[str, Any]:
    """A stored book: the response to its creation."""
    created: dict[str, Any] = api.post("/api/books", json=build_book()).json()
    return created


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The served library with its own database, for clients that work at the same time. Their writes stay."""
    # On SQLite only half the threads may wait to write, and no writer of a test is to be refused.
    with serve_library(tmp_path_factory.mktemp("service"), WEB_CONCURRENCY="2", WEB_THREADS="40") as service:
        yield service


@pytest.fixture(autouse=True)
def fresh_revocations() -> None:
    """Empties the list of revocations that this process keeps: it is from another test."""
    revocations.REVOCATION_LIST.invalidate()


@pytest.fixture(scope="session")
def handler(static_files: None) -> ClientHandler:
    """One handler for all clients: WhiteNoise reads every static file whenever a handler is made."""
    handler = ClientHandler(enforce_csrf_checks=False)
    handler.load_middleware()
    return handler


@pytest.fixture
def client(handler: ClientHandler) -> Client:
    """A client without a signed-in user."""
    client = Client()
    client.handler = handler
    return client


@pytest.fixture
def ada(db: None) -> User:
    return create_staff("ada", "Developers")


@pytest.fixture
def head(db: None) -> ActorRef:
    """A head librarian, who begins operations."""
    return create_head_librarian()


@pytest.fixture
def developer(client: Client, ada: User) -> Client:
    """A client with ada of the group Developers signed in."""
    client.force_login(ada)
    return client


@pytest.fixture
def root(client: Client, db: None) -> Client:
    """A client with a superuser signed in."""
    client.force_login(User.objects.create_user("root", is_staff=True, is_superuser=True))
    return client
