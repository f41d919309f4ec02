"""Formulas in CSV cells. Spreadsheet programs run them, even in untrusted files (OWASP, CSV Injection)."""

import re

# Programs skip a space before a formula, and some treat full-width characters as plain ones. A cell that begins with
# the escape character is escaped too, so that unescaping is unambiguous.
NEEDS_ESCAPE = re.compile(r"['\t\r\n]|\s*[=+\-@＝＋－＠]")
# A formula whose result is its own text: some programs write it so that spreadsheets do not convert an ISBN.
TEXT_FORMULA = re.compile('="((?:[^"]|"")*)"')
# Prefixes that do not belong to the text of a cell.
FIRST_SIGNS = frozenset("'=")


def escape_formula(cell: str) -> str:
    return f"'{cell}" if NEEDS_ESCAPE.match(cell) else cell


def unescape_formula(cell: str) -> str:
    """Returns the text that was passed to `escape_formula`."""
    return cell[1:] if cell.startswith("'") and NEEDS_ESCAPE.match(cell, 1) else cell


def read_cell(cell: str) -> str:
    """Returns the text of a cell."""
    formula = TEXT_FORMULA.fullmatch(cell)
    return formula[1].replace('""', '"') if formula else unescape_formula(cell)
