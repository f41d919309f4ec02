"""oauth4webapi, a client that checks all that the specifications allow a client to check, runs `whole_flow.js`."""

import json
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.clients.conftest import APPS
from tests.support.oauth_flows import SECRET
from tests.support.server import Service

SCRIPT = Path(__file__).with_name("whole_flow.js")


@pytest.mark.usefixtures("node_packages")
def test_oauth4webapi_finds_no_violation_of_the_specifications(service: Service, person: httpx.Client) -> None:
    script_input = {
        "issuer": service.url,
        "audience": f"{service.url}/api",
        "cookie": "; ".join(f"{name}={value}" for name, value in person.cookies.items()),
        "apps": [app._asdict() for app in APPS],
        "resourceServer": {"client_id": "catalogue", "secret": SECRET},
    }
    process = subprocess.run(
        ["node", SCRIPT], input=json.dumps(script_input), capture_output=True, text=True, timeout=120
    )
    assert process.returncode == 0, process.stderr
