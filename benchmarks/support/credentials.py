"""Creates a Bearer token, an API key and a session of a library."""

import subprocess
import sys

from benchmarks.competitors import ROOT, build_environment

CREATE_CREDENTIALS_CODE = """
import time
from django.utils import timezone
from oauth import api_keys
from tests.support.forged_tokens import build_claims, forge_token
from tests.support.oauth_flows import create_librarian
# Librarians may not edit many books by one operation.
librarian = create_librarian("librarian", "Head librarians")
print(forge_token(build_claims(librarian.pk, exp=int(time.time()) + 24 * 3600)))
print(api_keys.create_key(librarian, "benchmark", frozenset({"read", "write"}), timezone.now())[1])
"""
CREATE_SESSION_CODE = """
import httpx
from tests.support.oauth_flows import create_librarian, sign_in
client, librarian = httpx.Client(), create_librarian("librarian in the admin")
librarian.is_staff = librarian.is_superuser = True
librarian.save()
sign_in(client, librarian)
print(client.cookies["sessionid"])
"""


def create_credentials(database_url: str, port: int) -> dict[str, tuple[str, str]]:
    """Returns headers by the name of the column. The token's issuer is the library on this port."""
    token, key = run_code(database_url, CREATE_CREDENTIALS_CODE, PORT=str(port)).split()
    return {"bearer": ("Authorization", f"Bearer {token}"), "api-key": ("X-API-Key", key)}


def create_session(database_url: str, secret_key: str) -> dict[str, str]:
    """Returns the cookie of a librarian who is signed in to the admin of the library with this SECRET_KEY."""
    return {"sessionid": run_code(database_url, CREATE_SESSION_CODE, SECRET_KEY=secret_key).strip()}


def run_code(database_url: str, code: str, **settings: str) -> str:
    command = [sys.executable, "manage.py", "shell", "-v0", "-c", code]
    environment = build_environment(database_url) | settings
    return subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
