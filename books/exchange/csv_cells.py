"""Keeps spreadsheet programs from running a cell as a formula (OWASP, CSV Injection)."""

FORMULA_STARTS = tuple("=+-@\t\r'")


def escape_formula(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell


def unescape_formula(cell: str) -> str:
    """Returns the text that was passed to `escape_formula`."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA_STARTS) else cell
