"""The Flask app of docs/app-developers.md runs as it is written there.

It signs a person in through the library, reads books in the person's name, and verifies events.
"""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from tests.support.documents import APP_DEVELOPERS, list_code_blocks
from tests.support.endpoints import SECRET, add_new_secret, create_endpoint, deliver_ping
from tests.support.oauth_flows import SECRET as CLIENT_SECRET
from tests.support.oauth_flows import submit_consent
from tests.support.server import Service, reserve_port, run_in_shell, wait_for_port
from tests.support.waiting import PROCESS_TIMEOUT

(FLASK_APP,) = list_code_blocks(APP_DEVELOPERS, "python")
MAX_LINES = 50
REGISTRATION = """
from tests.support.oauth_flows import SECRET, create_app
create_app("shop", "confidential", "http://127.0.0.1/callback", "read write webhooks", client_secret=SECRET)
"""


@pytest.mark.usefixtures("transactional_db", "allow_private")
def test_the_flask_app_works(service: Service, person: httpx.Client, tmp_path: Path) -> None:
    run_in_shell(service.database_url, REGISTRATION)
    file = tmp_path / "app.py"
    file.write_text(FLASK_APP)
    variables = {"LIBRARY": service.url, "CLIENT_ID": "shop", "CLIENT_SECRET": CLIENT_SECRET, "SECRET": SECRET}
    command = [sys.executable, "-m", "flask", "--app", str(file), "run"]
    with reserve_port() as port:
        environment = os.environ | variables | {"FLASK_RUN_PORT": str(port)}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
            try:
                wait_for_port(process, port)
                url = f"http://127.0.0.1:{port}"
                with httpx.Client(base_url=url, timeout=PROCESS_TIMEOUT) as browser:
                    consent = browser.get("/").headers["Location"]
                    consent_response = submit_consent(person, dict(parse_qsl(urlsplit(consent).query)))
                    page = browser.get(consent_response.headers["Location"], follow_redirects=True)
                    other_state = browser.get(consent_response.headers["Location"].replace("state=", "state=x"))
                endpoint = create_endpoint(url=f"{url}/hook", form="C")
                delivery = deliver_ping(endpoint)
                add_new_secret(endpoint, is_promoted=True)
                refused = deliver_ping(endpoint)
            finally:
                process.terminate()
            output = process.communicate(timeout=PROCESS_TIMEOUT)[0].decode()
    assert "code_challenge_method=S256" in consent
    assert len(page.json()["titles"]) == 3
    assert page.json()["scope"] == "read write"
    assert other_state.status_code == 500
    assert (delivery.state, delivery.attempts.get().status) == ("delivered", 204)
    assert (refused.state, refused.attempts.get().status) == ("waiting", 401)
    assert f"test.ping {delivery.event.uuid}\n" in output


def test_the_app_is_short() -> None:
    assert FLASK_APP.count("\n") < MAX_LINES
