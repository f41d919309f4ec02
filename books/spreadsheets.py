"""Cells that a spreadsheet program shows and does not run (OWASP, CSV Injection)."""

FORMULA = tuple("=+-@\t\r'")


def shown(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def read(cell: str) -> str:
    """The text that `shown` was given."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell
