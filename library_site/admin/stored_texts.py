"""Sentences that the library stores in English, where it cannot know who reads them: reasons and entries of the log.

Where they are written, `gettext_noop` marks them for translation, with %(count)s in place of a number.
"""

import re

from django.utils.translation import gettext

NUMBER = re.compile(r"[0-9]+")


def translate_stored(text: str) -> str:
    """Returns a stored sentence in the reader's language, and any other text as it is."""
    number = NUMBER.search(text)
    if not number:
        return gettext(text) if text else ""
    sentence = f"{text[: number.start()]}%(count)s{text[number.end() :]}"
    return gettext(sentence).replace("%(count)s", number[0], 1)
