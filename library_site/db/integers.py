"""Integers as programs write them, from text of any length."""

import re

INTEGER_PATTERN = re.compile(r"-?[0-9]+")
# A bigint's largest.
BIGINT_MAX = 2**63 - 1


def parse_integer(text: str) -> int | None:
    """ASCII digits with an optional minus, else None; what no database column holds comes back as ±(2**63)."""
    if not INTEGER_PATTERN.fullmatch(text):
        return None
    # int() refuses more than 4,300 digits.
    significant = text.lstrip("-0")[:20]
    return max(-BIGINT_MAX - 1, min(BIGINT_MAX + 1, int(significant or 0) * (-1 if text[0] == "-" else 1)))
