"""Suggests the nearest known name for an unknown name."""

from collections.abc import Collection
from difflib import get_close_matches


def suggest_names(names: Collection[str], known_names: Collection[str]) -> dict[str, str]:
    """Returns messages for the first five unknown names, each with the nearest known name.

    The names are shortened and their lone surrogates escaped, so that a response can contain them.
    """
    unknown_names = [name for name in names if name not in known_names][:5]
    texts = [name[:50].encode(errors="backslashreplace").decode() for name in unknown_names]
    return {name: describe_nearest(name, known_names) for name in texts}


def describe_nearest(name: str, known_names: Collection[str]) -> str:
    (match,) = get_close_matches(name.lower(), known_names, n=1, cutoff=0.0)
    return f"It is not known here; the nearest name is {match}."
