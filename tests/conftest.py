"""The library as a program meets it: in this process, or served by the real server."""

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import hypothesis
import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.client import ClientHandler
from django.test.utils import override_settings
from pytest_django import Settings

from oauth.tokens import revocations
from tests.support import book_audit
from tests.support.books import new_book
from tests.support.serving import Service, serving

# How long an example takes says nothing of it.
hypothesis.settings.register_profile("suite", deadline=None)
# By hand, with `--hypothesis-profile=long`.
hypothesis.settings.register_profile("long", deadline=None, max_examples=20_000)
hypothesis.settings.load_profile("suite")

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication
    from pytest_django import DjangoDbBlocker


def pytest_collection_finish() -> None:
    """What was imported is no garbage: to look through it again and again takes a twentieth of the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def static_files() -> None:
    call_command("collectstatic", interactive=False, verbosity=0)


@pytest.fixture(scope="session", autouse=True)
def cheap_passwords() -> Iterator[None]:
    """What a hash costs is not what tests are about."""
    cheap = "django.contrib.auth.hashers.MD5PasswordHasher"
    with override_settings(PASSWORD_HASHERS=[cheap, *settings.PASSWORD_HASHERS]):
        yield


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """SQLite in a file, as it is in use: in memory its locks are others."""
    if connection.vendor == "sqlite":
        connection.settings_dict["TEST"]["NAME"] = str(tmp_path_factory.mktemp("database") / "test.sqlite3")


@pytest.fixture(scope="session")
def application(static_files: None) -> "WSGIApplication":
    # WhiteNoise looks for the static files when this is made.
    from library_site.wsgi import application

    return application


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: "DjangoDbBlocker") -> None:
    with django_db_blocker.unblock():
        book_audit.keep()


@pytest.fixture(autouse=True)
def changes_are_announced(request: pytest.FixtureRequest) -> Iterator[None]:
    """Holds each test to one event for each change of a book, but those that say `quiet` of themselves."""
    database = next((name for name in ("transactional_db", "db") if name in request.fixturenames), None)
    if not database or request.node.get_closest_marker("quiet"):
        yield
        return
    request.getfixturevalue(database)
    if database == "transactional_db":
        # They come last, and leave what they did behind.
        book_audit.forget()
    yield
    assert book_audit.announced() == book_audit.done()


@pytest.fixture
def api(db: None, application: "WSGIApplication", monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A client of the whole WSGI application; what it writes is rolled back."""
    # A request closes a connection that is inside a transaction, as the test's is. Django's own client, where a test
    # uses both, connects the signals again that lead there.
    monkeypatch.setattr(connection, "close_if_unusable_or_obsolete", lambda: None)
    with httpx.Client(transport=httpx.WSGITransport(app=application), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def allow_private(settings: Settings) -> None:
    """Receivers are on this machine."""
    settings.WEBHOOKS_ALLOW_PRIVATE = True


@pytest.fixture
def book(api: httpx.Client) -> dict[str, Any]:
    """A stored book, as its creation answered it."""
    created: dict[str, Any] = api.post("/api/books", json=new_book()).json()
    return created


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The served library, with a database of its own: for many clients at once, whose writes last."""
    with serving(tmp_path_factory.mktemp("service"), WEB_CONCURRENCY="2") as running:
        yield running


@pytest.fixture(autouse=True)
def fresh_revocations() -> None:
    """What this process last read of revocations was another test's."""
    revocations.REVOCATION_LIST.invalidate()


@pytest.fixture(scope="session")
def handler(static_files: None) -> ClientHandler:
    """Of all browsers: WhiteNoise reads every static file for each it makes."""
    shared = ClientHandler(enforce_csrf_checks=False)
    shared.load_middleware()
    return shared


@pytest.fixture
def client(handler: ClientHandler) -> Client:
    """A browser in which nobody is signed in."""
    client = Client()
    client.handler = handler
    return client


@pytest.fixture
def ada(db: None) -> User:
    user = User.objects.create_user("ada", is_staff=True)
    user.groups.add(Group.objects.get(name="Developers"))
    return user


@pytest.fixture
def developer(client: Client, ada: User) -> Client:
    """A browser in which ada of the group Developers is signed in."""
    client.force_login(ada)
    return client


@pytest.fixture
def root(client: Client, db: None) -> Client:
    """A browser in which a superuser is signed in."""
    client.force_login(User.objects.create_user("root", is_staff=True, is_superuser=True))
    return client
