"""How the suite is shared between the databases: nothing is left out."""

from pathlib import Path

import pytest

from tests.__main__ import DIFFERENT, RECIPES, SHARE_OF_FIRST, SHARE_OF_SECOND, choose_tests

ROOT = Path(__file__).parents[3]
MODULES = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]


def test_each_module_runs_on_one_database_and_what_can_differ_on_both() -> None:
    folders = [*DIFFERENT, *SHARE_OF_FIRST, *SHARE_OF_SECOND]
    # The tests of recipes run in a copy of the tree, and those of the image where it was built.
    shares = {
        module: [name for name in [*folders, "tests/recipes", "tests/container"] if module.startswith(f"{name}/")]
        for module in MODULES
    }
    assert {module: share for module, share in shares.items() if len(share) != 1} == {}
    runs = choose_tests(["SQLite", "PostgreSQL"])
    assert all(run[: len(DIFFERENT)] == DIFFERENT for run in runs.values())
    assert {argument for run in runs.values() for argument in run if not argument.startswith("-")} - {RECIPES} == {
        *folders
    }


def test_a_single_database_runs_everything() -> None:
    assert choose_tests(["SQLite"]) == {"SQLite": []}


def test_only_ci_proves_recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (ROOT / RECIPES).exists()
    monkeypatch.delenv("CI", raising=False)
    assert not any(RECIPES in run for run in choose_tests(["a", "b"]).values())
    monkeypatch.setenv("CI", "true")
    assert [RECIPES in run for run in choose_tests(["a", "b"]).values()] == [True, False]
