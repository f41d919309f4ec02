"""The recipes of docs/recipes/: their patches apply to this tree, and what they add works everywhere."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patches import apply_patch, list_patches
from tests.support.waiting import PROCESS_TIMEOUT

ROOT = Path(__file__).parents[2]
COPIED_FOLDERS = ("books", "oauth", "webhooks", "library_site", "templates", "tests", "docs")
COPIED_FILES = ("manage.py", "pyproject.toml")
# Those that look at all members and formats.
GENERIC_TESTS = [
    "tests/books/test_members.py",
    "tests/books/files/test_formats.py::test_what_is_exported_is_read_again",
]

# In the order in which they are applied: the context of a patch may be what an earlier one adds.
PATCHED = ["member", "filter", "version", "event", "format", "column", "setting"]

pytestmark = [pytest.mark.database_independent, pytest.mark.processes]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the tree without what was installed or built."""
    for name in COPIED_FOLDERS:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    for name in COPIED_FILES:
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_what_the_recipes_add_works(tree: Path) -> None:
    for name in PATCHED:
        [patch] = list_patches((ROOT / f"docs/recipes/{name}.md").read_text())
        apply_patch(patch, tree)
    run(tree, "manage.py", "makemigrations", "books", "--name", "recipes")
    run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/recipes", *GENERIC_TESTS)


def run(tree: Path, *arguments: str) -> None:
    environment = os.environ | {"DATABASE_URL": f"sqlite:///{tree / 'library.sqlite3'}", "RECIPES": "applied"}
    process = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True, timeout=PROCESS_TIMEOUT
    )
    assert process.returncode == 0, process.stdout + process.stderr


def test_each_recipe_is_applied_and_proved() -> None:
    pages = {path.stem for path in (ROOT / "docs/recipes").glob("*.md")} - {"README"}
    proofs = {path.stem.removeprefix("test_") for path in (ROOT / "tests/recipes").glob("test_*.py")}
    assert pages == proofs == set(PATCHED)
