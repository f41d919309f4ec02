"""Formulas in the cells of CSV. Spreadsheet programs run them, also those of strangers (OWASP, CSV Injection)."""

import re

# Programs skip space before a formula, and some take full-width signs for plain ones. A cell that begins with the
# escape character itself is escaped too, so that each cell of a file is one text only.
NEEDS_ESCAPE = re.compile(r"['\t\r\n]|\s*[=+\-@＝＋－＠]")
# A formula whose result is the text in it: so programs keep spreadsheets from making a number of an ISBN.
TEXT_FORMULA = re.compile('="((?:[^"]|"")*)"')
# What a cell begins with that is not its own text.
FIRST_SIGNS = frozenset("'=")


def escape_formula(cell: str) -> str:
    return f"'{cell}" if NEEDS_ESCAPE.match(cell) else cell


def unescape_formula(cell: str) -> str:
    """Returns the text that was passed to `escape_formula`."""
    return cell[1:] if cell.startswith("'") and NEEDS_ESCAPE.match(cell, 1) else cell


def read_cell(cell: str) -> str:
    """Returns the text that a cell stands for."""
    formula = TEXT_FORMULA.fullmatch(cell)
    return formula[1].replace('""', '"') if formula else unescape_formula(cell)
