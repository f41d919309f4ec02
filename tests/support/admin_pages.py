"""Submits actions of admin pages and reads what the pages show."""

import html
import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

from django.apps import apps
from django.contrib.auth.models import User
from django.test import Client

from tests.support.oauth_flows import join_groups

# Queries, ids and selections that no link or form of the admin contains, but that anybody can send.
ODD_QUERIES = [
    "q=%00", "q=" + "word+" * 500, "q='", "o=99", "o=-3.1.2", "p=9999999999999999999", "e=1", "_facets=1",
]  # fmt: skip
ODD_IDS = ["abc", "%00", "9" * 23, "9" * 5000, "%D9%A1", "-1", "_00"]
ODD_SELECTIONS = ["abc", "\0", "9" * 23, "9" * 5000, "", "1.5", "{}"]


def create_staff(name: str, *groups: str, **fields: Any) -> User:
    """Creates a person of these groups who may sign in to the admin."""
    user = User.objects.create_user(name, is_staff=True, **fields)
    join_groups(user, *groups)
    return user


def create_session(name: str, *groups: str, **fields: Any) -> str:
    """Creates a person of these groups, or a superuser, and returns the key of a session of theirs."""
    client = Client()
    client.force_login(create_staff(name, *groups, is_superuser=not groups, **fields))
    return client.cookies["sessionid"].value


def read_secrets(response: Any) -> dict[str, str]:
    """Returns the secrets that the page shows only once, by their labels."""
    assert response.status_code == 200
    assert "no-store" in response.headers["Cache-Control"]
    fields = re.findall(r"<dt[^>]*>(.*?)</dt>\s*<dd><code>(.*?)</code>", response.content.decode())
    return {name: html.unescape(secret) for name, secret in fields}


def read_text(response: Any) -> str:
    content: str = response.content.decode()
    return content


def read_words(response: Any) -> str:
    """Returns the text of a page without its tags, in which any space is one space."""
    return " ".join(re.sub(r"<[^>]*>", " ", read_text(response)).split())


def follow_link(browser: Client, response: Any, words: str) -> Any:
    """Opens the first link with these words."""
    link = re.search(rf'<a href="([^"]*)"[^>]*>{re.escape(words)}</a>', read_text(response))
    assert link, words
    return browser.get(urljoin(response.wsgi_request.path, html.unescape(link[1])))


class FormReader(HTMLParser):
    """Reads what a browser would send if it submitted the inputs of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        is_sent = attributes.get("type") not in ("submit", "checkbox") or "checked" in attributes
        if tag == "input" and is_sent and (name := attributes.get("name")):
            self.values[name] = attributes.get("value") or ("on" if attributes.get("type") == "checkbox" else "")


def read_inputs(page: str) -> dict[str, str]:
    reader = FormReader()
    reader.feed(page)
    return reader.values


def list_rows(response: Any) -> list[Any]:
    """Returns the objects that a changelist page shows."""
    return list(response.context["cl"].result_list)


def list_badges(response: Any) -> list[str]:
    """Returns the words of the states that a page shows."""
    badges = re.findall(r'<span class="badge[^"]*">(.*?)</span>', read_text(response))
    return [re.sub("<[^>]*>", "", badge) for badge in badges]


def submit_action(browser: Client, changelist: str, action: str, *rows: Any, query: str = "") -> Any:
    """Runs an action of the changelist at this address on these rows, and returns the page that follows."""
    form = {"action": action, "_selected_action": [str(row.pk) for row in rows]}
    return browser.post(f"{changelist}?{query}", form, follow=True)


def dump_database() -> str:
    """Returns every row of every table as text."""
    return str([list(model._default_manager.values()) for model in apps.get_models() if model._meta.managed])
