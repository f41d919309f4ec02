"""The options of the measurements, and notes about the progress."""

import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple


class Number(NamedTuple):
    """A whole number within these bounds."""

    minimum: int
    maximum: int
    default: int
    help: str = ""


class Names(NamedTuple):
    """Some of these names, with commas between them; by default all but the `extra` ones."""

    choices: Iterable[str]
    extra: Sequence[str] = ()


def parse_options(module: str, description: str | None, **options: Number | Names | str) -> Namespace:
    """Reads the command line of `python -m MODULE`. A text explains an option without a value.

    From now on SIGTERM runs the clean-up, otherwise servers and workers would go on running.
    """
    parser = ArgumentParser(prog=f"python -m {module}", description=description)
    for name, option in options.items():
        if isinstance(option, Number):
            read, default, text = make_integer_parser(option), option.default, option.help
            parser.add_argument(f"--{name}", type=read, default=default, help=text)
        elif isinstance(option, str):
            parser.add_argument(f"--{name}", action="store_true", help=option)
        else:
            choices = list(option.choices)
            names = [*choices, *option.extra]
            parser.add_argument(f"--{name}", type=make_list_parser(names), default=choices, help=", ".join(names))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return parser.parse_args()


def make_integer_parser(option: Number) -> Callable[[str], int]:
    def parse_integer(text: str) -> int:
        if not text.isdecimal() or not option.minimum <= int(text) <= option.maximum:
            raise ArgumentTypeError(f"{text!r} is not a whole number from {option.minimum} to {option.maximum}")
        return int(text)

    return parse_integer


def make_list_parser(choices: list[str]) -> Callable[[str], list[str]]:
    def parse_list(text: str) -> list[str]:
        names = text.split(",")
        if unknown := set(names) - set(choices):
            raise ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(choices)}")
        return [choice for choice in choices if choice in names]

    return parse_list


def note(text: str) -> None:
    """Prints to stderr: stdout has the results only."""
    print(text, file=sys.stderr, flush=True)
