"""The recipes of docs/recipes/: their patches apply to this tree, and what they add works everywhere."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.postgres import start_cluster
from tests.support.waiting import PROCESS_TIMEOUT

ROOT = Path(__file__).parents[3]
COPIED_FOLDERS = ("books", "oauth", "webhooks", "library_site", "templates", "tests", "docs")
COPIED_FILES = ("manage.py", "pyproject.toml")
# Those that look at all fields.
GENERIC_TESTS = [
    "tests/rules/books/test_fields.py",
    "tests/rules/books/files/test_formats.py::test_what_is_exported_is_read_again",
]

# In the order in which they are applied: the context of a patch may be what an earlier one adds.
RECIPES = ["field", "filter", "version"]


BLOCK_PATTERN = re.compile(r"^```diff\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Hunk(NamedTuple):
    file: str
    old: str
    new: str


def list_patches(text: str) -> list[str]:
    """Returns the blocks of a Markdown text that are marked as `diff`."""
    return BLOCK_PATTERN.findall(text)


def read_hunks(patch: str) -> list[Hunk]:
    hunks = []
    for part in re.split(r"^--- .*\n", patch, flags=re.MULTILINE)[1:]:
        head, *bodies = re.split(r"^@@\n", part, flags=re.MULTILINE)
        file = head.removeprefix("+++ b/").strip()
        for body in bodies:
            lines = body.splitlines()
            old = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
            new = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
            hunks.append(Hunk(file, old, new))
    return hunks


def apply_patch(patch: str, tree: Path) -> None:
    """Writes the files of a patch. The old lines of a hunk occur once; a new file has none."""
    for file, old, new in read_hunks(patch):
        path = tree / file
        text = path.read_text() if path.exists() else ""
        assert text.count(old) == 1 if old else not text, f"{file} has {text.count(old)} times:\n{old}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(old, new) if old else new)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree without what was installed or built, with all recipes and the migration that they need."""
    tree = tmp_path_factory.mktemp("recipes")
    for name in COPIED_FOLDERS:
        # The compiled modules are good for the copies, too, which have the same times.
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("node_modules"))
    for name in COPIED_FILES:
        shutil.copy(ROOT / name, tree)
    for name in RECIPES:
        [patch] = list_patches((ROOT / f"docs/recipes/{name}.md").read_text())
        apply_patch(patch, tree)
    run(tree, os.environ["DATABASE_URL"], "manage.py", "makemigrations", "books", "--name", "recipes")
    return tree


def test_what_the_recipes_add_works_on_sqlite(tree: Path) -> None:
    prove_recipes(tree, f"sqlite:///{tree / 'library.sqlite3'}", *GENERIC_TESTS)


def test_what_the_recipes_add_works_on_postgresql(tree: Path, postgresql: str) -> None:
    with start_cluster(fsync="off", full_page_writes="off") as cluster:
        prove_recipes(tree, cluster.url())


def prove_recipes(tree: Path, database_url: str, *other_tests: str) -> None:
    run(tree, database_url, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/recipes", *other_tests)


def run(tree: Path, database_url: str, *arguments: str) -> None:
    environment = os.environ | {"DATABASE_URL": database_url, "RECIPES": "applied"}
    process = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True, timeout=PROCESS_TIMEOUT
    )
    assert process.returncode == 0, process.stdout + process.stderr


def test_each_recipe_is_applied_and_proved() -> None:
    pages = {path.stem for path in (ROOT / "docs/recipes").glob("*.md")} - {"README"}
    proofs = {path.stem.removeprefix("test_") for path in (ROOT / "tests/recipes").glob("test_*.py")}
    assert pages == proofs == {*RECIPES}
