"""Cells that a spreadsheet program shows and does not run (OWASP, CSV Injection)."""

FORMULA_STARTS = tuple("=+-@\t\r'")


def escape_formula(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell


def unescape_formula(cell: str) -> str:
    """The text that `escaped` was given."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA_STARTS) else cell
