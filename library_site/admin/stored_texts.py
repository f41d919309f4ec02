"""Reasons and log entries are stored in English, because the language of the user who will read them is unknown.

The code that writes them marks them with `gettext_noop`, with %(count)s for a number.
"""

import re

from django.utils.translation import gettext

NUMBER = re.compile(r"[0-9]+")


def translate_stored(text: str) -> str:
    """Translates a stored sentence, and returns any other text unchanged."""
    number = NUMBER.search(text)
    if not number:
        return gettext(text) if text else ""
    sentence = f"{text[: number.start()]}%(count)s{text[number.end() :]}"
    return gettext(sentence).replace("%(count)s", number[0], 1)
