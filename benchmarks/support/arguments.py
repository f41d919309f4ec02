"""Types of command-line arguments, and notes about the progress."""

import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable


def make_integer_parser(minimum: int, maximum: int) -> Callable[[str], int]:
    def parse_integer(text: str) -> int:
        if not text.isdecimal() or not minimum <= int(text) <= maximum:
            raise ArgumentTypeError(f"{text!r} is not a whole number from {minimum} to {maximum}")
        return int(text)

    return parse_integer


def make_list_parser(choices: Iterable[str]) -> Callable[[str], list[str]]:
    def parse_list(text: str) -> list[str]:
        names = text.split(",")
        if unknown := set(names) - set(choices):
            raise ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(choices)}")
        return [choice for choice in choices if choice in names]

    return parse_list


def note(text: str) -> None:
    """Prints to stderr: stdout has the results only."""
    print(text, file=sys.stderr, flush=True)
