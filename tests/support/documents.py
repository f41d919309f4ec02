"""Reads the programs that the guides show."""

import re
from pathlib import Path

APP_DEVELOPERS = Path(__file__).parent.parent.parent / "docs" / "app-developers.md"


def list_code_blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)
