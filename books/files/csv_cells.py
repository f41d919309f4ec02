"""Keeps spreadsheet programs from running a cell as a formula (OWASP, CSV Injection)."""

import re

# Programs skip space before a formula, and some take full-width signs for plain ones. A cell that begins with the
# escape character itself is escaped too, so that each cell of a file is one text only.
NEEDS_ESCAPE = re.compile(r"['\t\r\n]|\s*[=+\-@＝＋－＠]")


def escape_formula(cell: str) -> str:
    return f"'{cell}" if NEEDS_ESCAPE.match(cell) else cell


def unescape_formula(cell: str) -> str:
    """Returns the text that was passed to `escape_formula`."""
    return cell[1:] if cell.startswith("'") and NEEDS_ESCAPE.match(cell, 1) else cell
