"""How the suite is shared between the databases: nothing is left out."""

from collections import Counter
from pathlib import Path

import pytest

from tests.__main__ import DIFFERENT, IN_THE_PROCESS, RECIPES, WITH_PROCESSES, Run, plan_runs

ROOT = Path(__file__).parents[3]
BOTH = {"SQLite": "sqlite:///a", "PostgreSQL": "postgresql://a/b"}
MODULES = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]


def test_each_module_runs_on_one_database_and_what_can_differ_on_both() -> None:
    folders = [*DIFFERENT, *IN_THE_PROCESS, *WITH_PROCESSES]
    # The tests of recipes run in a copy of the tree, and those of the image where it was built.
    shares = {
        module: [name for name in [*folders, "tests/recipes", "tests/container"] if module.startswith(f"{name}/")]
        for module in MODULES
    }
    assert {module: share for module, share in shares.items() if len(share) != 1} == {}
    runs = list_folders(BOTH)
    assert [run[: len(DIFFERENT)] == DIFFERENT for run in runs] == [True, True, False]
    once = Counter(name for run in runs for name in run if name not in [*DIFFERENT, RECIPES])
    assert once == dict.fromkeys([*IN_THE_PROCESS, *WITH_PROCESSES], 1)


def test_each_run_has_a_database_of_its_own() -> None:
    assert len({run.url for run in plan_runs(BOTH, [])}) == 3


def test_a_single_database_runs_everything() -> None:
    assert plan_runs({"SQLite": "sqlite:///a"}, []) == [Run("SQLite", "sqlite:///a", [])]


def test_only_ci_proves_recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (ROOT / RECIPES).exists()
    monkeypatch.delenv("CI", raising=False)
    assert not any(RECIPES in run for run in list_folders(BOTH))
    monkeypatch.setenv("CI", "true")
    assert [RECIPES in run for run in list_folders(BOTH)].count(True) == 1


def list_folders(urls: dict[str, str]) -> list[list[str]]:
    return [[text for text in run.arguments if not text.startswith("-")] for run in plan_runs(urls, [])]
