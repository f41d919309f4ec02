"""Reads the pages for people, and submits their forms."""

import re
from html import unescape

import httpx
from django.contrib.sessions.models import Session

from tests.support.oauth_flows import read_hidden_fields

PASSWORD = "correct horse battery staple"


def submit(client: httpx.Client, path: str, /, form_path: str | None = None, **form: str) -> httpx.Response:
    """Submits the form of a page with its CSRF token."""
    return client.post(path, data={**read_hidden_fields(client.get(form_path or path).text), **form})


def read_text(page: httpx.Response) -> str:
    """Returns the text of a page without its tags."""
    return " ".join(unescape(re.sub(r"<[^>]+>", "", page.text.partition("<body>")[2])).split())


def dump_sessions() -> str:
    """Returns all that the sessions hold as text."""
    return str([session.get_decoded() for session in Session.objects.all()])
