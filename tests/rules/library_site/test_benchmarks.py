"""The measurements run code in processes of the library; it stands in strings, which no type checker reads."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
IMPORT = re.compile(r"\bfrom ((?:books|oauth|webhooks|library_site|tests|benchmarks)[\w.]*) import \(?([\w, ]+)")


@pytest.mark.parametrize(
    "path", [ROOT / "docs/screenshots.py", *sorted((ROOT / "benchmarks").rglob("*.py"))], ids=lambda path: path.stem
)
def test_what_a_measurement_imports_exists(path: Path) -> None:
    for module, names in IMPORT.findall(path.read_text()):
        imported = import_module(module)
        for name in re.findall(r"\w+", names):
            assert hasattr(imported, name) or import_module(f"{module}.{name}"), module
