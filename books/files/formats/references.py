"""Escapes characters that a format cannot contain as references like `&#x1D;`.

MARC 21 uses them for characters that an encoding lacks (MARC 21, Character Sets, lossless conversion).
"""

import re

REFERENCE_PATTERN = re.compile("&#x([0-9A-Fa-f]{1,6});")
# Part of a pattern of unsafe characters: text that would itself be read as a reference.
AMBIGUOUS = r"&(?=#x[0-9A-Fa-f]{1,6};)"


def escape_characters(text: str, unsafe: "re.Pattern[str]") -> str:
    return unsafe.sub(lambda match: f"&#x{ord(match[0]):X};", text)


def unescape_characters(text: str) -> str:
    return REFERENCE_PATTERN.sub(unescape_reference, text) if "&#x" in text else text


def unescape_reference(match: "re.Match[str]") -> str:
    code_point = int(match[1], 16)
    is_character = code_point < 0x110000 and not 0xD800 <= code_point < 0xE000
    return chr(code_point) if is_character else match[0]
