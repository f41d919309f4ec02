"""States as words: the word tells a state, and its colour only helps to find it."""

from typing import Literal

from django.utils.html import format_html

# Classes of admin.css.
Tone = Literal["", "good", "warning", "bad"]


def format_badge(word: object, tone: Tone = "") -> str:
    """Returns HTML."""
    return format_html('<span class="{}">{}</span>', f"badge {tone}".strip(), word)
