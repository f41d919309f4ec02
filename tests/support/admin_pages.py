"""What tests of the desks do there, and read on their pages."""

import html
import re
from typing import Any

from django.apps import apps
from django.test import Client

# What addresses may hold that no page of ours links to.
ODD_QUERIES = [
    "q=%00",
    "q=" + "word+" * 500,
    "q='",
    "o=99",
    "o=-3.1.2",
    "p=9999999999999999999",
    "e=1",
    "_facets=1",
]
ODD_IDS = ["abc", "%00", "9" * 23, "9" * 5000, "%D9%A1", "-1", "_00"]
ODD_SELECTIONS = ["abc", "\0", "9" * 23, "9" * 5000, "", "1.5", "{}"]


def told(answer: Any) -> dict[str, str]:
    """What the page tells once, by name."""
    assert answer.status_code == 200
    assert "no-store" in answer.headers["Cache-Control"]
    found = re.findall(r"<label[^>]*>(.*?)</label><br>\s*<textarea[^>]*>(.*?)</textarea>", answer.content.decode())
    return {name: html.unescape(secret) for name, secret in found}


def text(answer: Any) -> str:
    content: str = answer.content.decode()
    return content


def listed(answer: Any) -> list[Any]:
    return list(answer.context["cl"].result_list)


def acted(browser: Client, desk: str, action: str, *rows: Any, query: str = "") -> Any:
    form = {"action": action, "_selected_action": [str(row.pk) for row in rows]}
    return browser.post(f"{desk}?{query}", form, follow=True)


def everything_stored() -> str:
    return str([list(model._default_manager.values()) for model in apps.get_models() if model._meta.managed])
