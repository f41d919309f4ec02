"""How the suite is shared between the databases: nothing is left out."""

from itertools import chain
from pathlib import Path

import pytest

from tests.__main__ import DIFFERENT, POSTGRESQL, RUNS, SQLITE, choose_runs

ROOT = Path(__file__).parents[3]
MODULES = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]


def test_each_module_runs_once_and_what_can_differ_on_both_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    # The tests of recipes run in a copy of the tree, those of an app beside it with its settings, and those of the
    # image where it was built.
    folders = [*chain(*RUNS), "tests/recipes", "tests/beside", "tests/container"]
    shares = {module: [name for name in folders if module.startswith(f"{name}/")] for module in MODULES}
    assert {module: share for module, share in shares.items() if len(share) != 1} == {}
    runs = choose_runs([SQLITE, POSTGRESQL], [])
    assert [run.arguments for run in runs if run.database == POSTGRESQL] == [DIFFERENT]
    assert [run.arguments[:-1] for run in runs if run.database == SQLITE] == RUNS
    assert choose_runs([SQLITE], []) == [run for run in runs if run.database == SQLITE]
