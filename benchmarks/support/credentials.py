"""Creates a Bearer token and an API key of a library that is running."""

import subprocess
import sys

from benchmarks.competitors import ROOT, build_environment

CREATE_CREDENTIALS_CODE = """
import time
from django.utils import timezone
from oauth import api_keys
from tests.support.forged_tokens import build_claims, forge_token
from tests.support.oauth_flows import create_librarian
librarian = create_librarian()
print(forge_token(build_claims(librarian.pk, exp=int(time.time()) + 24 * 3600)))
print(api_keys.create_key(librarian, "benchmark", frozenset({"read", "write"}), timezone.now())[1])
"""


def create_credentials(database_url: str, port: int) -> dict[str, tuple[str, str]]:
    """Returns headers by the name of the column. The token's issuer is the library on this port."""
    command = [sys.executable, "manage.py", "shell", "-v0", "-c", CREATE_CREDENTIALS_CODE]
    environment = build_environment(database_url) | {"PORT": str(port)}
    output = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    token, key = output.split()
    return {"bearer": ("Authorization", f"Bearer {token}"), "api-key": ("X-API-Key", key)}
