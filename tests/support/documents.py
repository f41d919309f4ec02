"""Reads what documents say: the programs of the guides, and the table of dependencies."""

import re
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[2] / "docs"
APP_DEVELOPERS, DEPENDENCIES = DOCS / "app-developers.md", DOCS / "dependencies.md"
PACKAGE_OWNERS = packages_distributions()


class Dependency(NamedTuple):
    name: str
    module: str
    imports: set[str]
    loaded: str


def list_dependencies() -> list[Dependency]:
    rows = re.findall(r"^\| `([\w-]+)` .* `([\w/]+\.py)` \| (.+) \|$", DEPENDENCIES.read_text(), re.MULTILINE)
    return [Dependency(name, module, list_imports(name), loaded) for name, module, loaded in rows]


def list_imports(name: str) -> set[str]:
    """The top-level packages that a distribution installs, as far as it is installed."""
    names = {name, name.replace("-", "_")}
    return {package for package, owners in PACKAGE_OWNERS.items() if names & {*owners}}


def list_code_blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)
