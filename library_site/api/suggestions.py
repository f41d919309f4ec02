"""Names that are not known, and what was probably meant."""

from collections.abc import Collection
from difflib import get_close_matches


def suggest_names(given: Collection[str], known: Collection[str]) -> dict[str, str]:
    """The first five names that are not known, each with a sentence that names the nearest that is.

    They are shortened, and lone surrogates in them escaped, so that they may stand in an answer.
    """
    strange = [name for name in given if name not in known][:5]
    shown = [name[:50].encode(errors="backslashreplace").decode() for name in strange]
    return {name: describe_nearest(name, known) for name in shown}


def describe_nearest(name: str, known: Collection[str]) -> str:
    (nearest,) = get_close_matches(name.lower(), known, n=1, cutoff=0.0)
    return f"It is not known here; the nearest name is {nearest}."
