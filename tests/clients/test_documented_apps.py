"""The Flask and Express apps of docs/app-developers.md run as they are written there.

Each signs a person in through the library, reads books in the person's name, and verifies events.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from tests.__main__ import NODE_MODULES
from tests.support.documents import APP_DEVELOPERS, list_code_blocks
from tests.support.endpoints import SECRET, add_new_secret, create_endpoint, deliver_ping
from tests.support.oauth_flows import SECRET as CLIENT_SECRET
from tests.support.oauth_flows import submit_consent
from tests.support.server import Service, reserve_port, run_in_shell, wait_for_port
from tests.support.waiting import PROCESS_TIMEOUT

(FLASK_APP,) = list_code_blocks(APP_DEVELOPERS, "python")
EXPRESS_APP, _ = list_code_blocks(APP_DEVELOPERS, "js")
MAX_LINES = 50
REGISTRATION = """
from tests.support.oauth_flows import SECRET, create_app
create_app("shop", "confidential", "http://127.0.0.1/callback", "read write webhooks", client_secret=SECRET)
"""


class RunningApp(NamedTuple):
    url: str
    process: "subprocess.Popen[bytes]"


@pytest.fixture(scope="module")
def registered(service: Service) -> Service:
    run_in_shell(service.database_url, REGISTRATION)
    return service


@contextmanager
def run_app(command: Sequence[str], library: Service) -> Iterator[RunningApp]:
    with reserve_port() as port:
        variables = {"LIBRARY": library.url, "CLIENT_ID": "shop", "CLIENT_SECRET": CLIENT_SECRET, "SECRET": SECRET}
        environment = os.environ | variables | {"PORT": str(port), "FLASK_RUN_PORT": str(port)}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, cwd=NODE_MODULES.parent) as process:
            try:
                wait_for_port(process, port)
                yield RunningApp(f"http://127.0.0.1:{port}", process)
            finally:
                process.terminate()


def check_app(command: Sequence[str], library: Service, person: httpx.Client) -> None:
    with run_app(command, library) as app:
        with httpx.Client(base_url=app.url, timeout=PROCESS_TIMEOUT) as browser:
            consent = browser.get("/").headers["Location"]
            consent_response = submit_consent(person, dict(parse_qsl(urlsplit(consent).query)))
            page = browser.get(consent_response.headers["Location"], follow_redirects=True)
            other_state = browser.get(consent_response.headers["Location"].replace("state=", "state=x"))
        endpoint = create_endpoint(url=f"{app.url}/hook", form="C")
        delivery = deliver_ping(endpoint)
        add_new_secret(endpoint, is_promoted=True)
        refused = deliver_ping(endpoint)
        app.process.terminate()
        output = app.process.communicate(timeout=PROCESS_TIMEOUT)[0].decode()
    assert "code_challenge_method=S256" in consent
    assert len(page.json()["titles"]) == 3
    assert page.json()["scope"] == "read write"
    assert other_state.status_code in (400, 500)
    assert (delivery.state, delivery.attempts.get().status) == ("delivered", 204)
    assert (refused.state, refused.attempts.get().status) == ("waiting", 401)
    assert f"test.ping {delivery.event.uuid}\n" in output


@pytest.mark.usefixtures("transactional_db", "allow_private")
def test_the_flask_app_works(registered: Service, person: httpx.Client, tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(FLASK_APP)
    check_app([sys.executable, "-m", "flask", "--app", str(file), "run"], registered, person)


@pytest.mark.usefixtures("transactional_db", "allow_private", "node_packages")
def test_the_express_app_works(registered: Service, person: httpx.Client) -> None:
    check_app(["node", "--input-type=module", "--eval", EXPRESS_APP], registered, person)


def test_the_apps_are_short() -> None:
    assert [code.count("\n") < MAX_LINES for code in (FLASK_APP, EXPRESS_APP)] == [True, True]
