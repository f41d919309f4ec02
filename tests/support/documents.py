"""Reads what documents say: the programs of the guides, and the comments of the requirements."""

import re
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
APP_DEVELOPERS, REQUIREMENTS = ROOT / "docs/app-developers.md", ROOT / "requirements"
PACKAGE_OWNERS = packages_distributions()


class Dependency(NamedTuple):
    name: str
    purpose: str
    imports: set[str]


def list_dependencies(loaded: str = "") -> list[Dependency]:
    """Those of run.in below the comment that says when they are loaded; without it all, with those of optional.in."""
    lines = "".join((REQUIREMENTS / name).read_text() for name in ("run.in", "optional.in"))
    if loaded:
        lines = lines.partition(f"Loaded when {loaded} starts")[2].partition("\n#")[0]
    rows = re.findall(r"^([\w-]+)[^\s#]*(?: +# (.+))?$", lines, re.MULTILINE)
    return [Dependency(name, purpose, list_imports(name)) for name, purpose in rows if not name.startswith("-")]


def list_imports(name: str) -> set[str]:
    """The top-level packages that a distribution installs, as far as it is installed."""
    names = {name, name.replace("-", "_")}
    return {package for package, owners in PACKAGE_OWNERS.items() if names & {*owners}}


def list_code_blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)
