"""What the command line takes, and what is said meanwhile."""

import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable


def within(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return number


def among(known: Iterable[str]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        chosen = text.split(",")
        if unknown := set(chosen) - set(known):
            raise ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        return [name for name in known if name in chosen]

    return names


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
