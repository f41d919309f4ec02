"""The measurements run code in processes of the library; it stands in strings, which no type checker reads."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.competitors import COMPETITORS, LIBRARIES, OURS, OURS_FETCH, OURS_LIMITED
from benchmarks.report import list_verdicts
from benchmarks.support.load import COLUMNS, Measurement, takes_part

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


def test_a_library_that_is_slow_with_a_limit_misses_the_goals_that_others_keep() -> None:
    speeds = {OURS: 100, OURS_FETCH: 100, OURS_LIMITED: 1}
    results = {
        (name, column): Measurement(speeds.get(name, 10), *[1.0] * 5)
        for name in COMPETITORS
        for column in COLUMNS
        if takes_part(name, column)
    }
    missed = {
        (library, name, column): verdict.is_missed
        for library in LIBRARIES
        for (name, column), verdict in list_verdicts(results, library).items()
    }
    assert all(is_missed == (library == OURS_LIMITED) for (library, _, _), is_missed in missed.items())
    measured = {(name, column) for library, name, column in missed if library == OURS_FETCH}
    reads = ("get", "list10", "list100", "rare", "common")
    peers = ("fastapi", "litestar", "fastify")
    equals = {("fastapi-equal", "put"), ("fastapi-equal", "post")}
    assert measured == {(peer, column) for peer in peers for column in reads} | equals
