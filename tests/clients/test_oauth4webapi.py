"""oauth4webapi, a client that checks all that the specifications let it check, goes through `whole_flow.js`."""

import json
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.__main__ import OAUTH4WEBAPI
from tests.clients.conftest import App
from tests.support.oauth_flows import SECRET
from tests.support.serving import Service

SCRIPT = Path(__file__).with_name("whole_flow.js")

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        not (shutil.which("node") and OAUTH4WEBAPI.exists()), reason="Node or oauth4webapi is not on this machine"
    ),
]


def test_oauth4webapi_finds_nothing_to_object_to(service: Service, person: httpx.Client, app: App) -> None:
    told = {
        "issuer": service.url,
        "audience": f"{service.url}/api",
        "cookie": "; ".join(f"{name}={value}" for name, value in person.cookies.items()),
        "app": app._asdict(),
        "resourceServer": {"client_id": "catalogue", "secret": SECRET},
    }
    run = subprocess.run(["node", SCRIPT], input=json.dumps(told), capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
