"""Parses integers from text of any length."""

import re

INTEGER_PATTERN = re.compile(r"-?[0-9]+")
# An integer with so many digits always fits into a bigint.
MAX_PLAIN_DIGITS = 18
# The largest bigint.
BIGINT_MAX = 2**63 - 1


def parse_integer(text: str) -> int | None:
    """Parses ASCII digits with an optional minus; returns None for other text.

    A number beyond BIGINT_MAX or its negative becomes the next one beyond: 2**63 or -2**63.
    """
    if len(text) < MAX_PLAIN_DIGITS and text.isascii() and text.isdigit():
        return int(text)
    if not INTEGER_PATTERN.fullmatch(text):
        return None
    # int() rejects more than 4,300 digits. A number with 20 digits is out of range.
    digits = text.lstrip("-0")[:20]
    return max(-BIGINT_MAX - 1, min(BIGINT_MAX + 1, int(digits or 0) * (-1 if text[0] == "-" else 1)))
