"""Applies the patches that a document shows: unified diffs whose hunks name no lines."""

import re
from pathlib import Path
from typing import NamedTuple

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
