"""Badges for states, and short lines. The text of a badge names the state; the colour only helps to find it."""

from collections.abc import Iterable
from typing import Literal

from django.utils.html import format_html, format_html_join

# CSS classes in admin.css.
Tone = Literal["", "good", "warning", "bad"]


def format_badge(word: object, tone: Tone = "") -> str:
    """Returns HTML."""
    return format_html('<span class="{}">{}</span>', f"badge {tone}".strip(), word)


def format_badge_with_note(word: object, tone: Tone, note: object) -> str:
    """Returns a badge and what one wants to know beside it, such as a date, as HTML."""
    return format_html('{} <span class="quiet date">{}</span>', format_badge(word, tone), note)


def format_lines(sentences: Iterable[object]) -> str:
    """Returns each sentence in a line of its own, in columns, as HTML that a label may contain."""
    return format_html(
        '<span class="lines">{}</span>', format_html_join(" ", "<span>{}</span>", ((one,) for one in sentences))
    )
