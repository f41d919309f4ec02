"""Exclusive time by layers of functions, which are named by where they stand and need not know of it."""

import inspect
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from importlib import import_module
from time import perf_counter_ns
from typing import Any

Function = Callable[..., Any]


class NotThere(Exception):
    """A name leads to no function."""


class Stopwatch:
    """Gives every moment to the innermost of the layers under way, in `spent`, in nanoseconds. For one thread."""

    def __init__(self) -> None:
        self.spent: dict[str, int] = defaultdict(int)
        self.under_way: list[str] = []
        self.since = 0

    @contextmanager
    def measuring(self, layers: Mapping[str, Iterable[str]]) -> Iterator[None]:
        """These functions, wherever a module or class has them. A name that ends in () makes the function meant.

        Raises NotThere.
        """
        with ExitStack() as put_back:
            for layer, names in layers.items():
                for name in names:
                    around = self.around_made if name.endswith("()") else self.around
                    replace(name.removesuffix("()"), partial(around, layer), put_back)
            yield

    def around(self, layer: str, function: Function) -> Function:
        @wraps(function)
        def measured(*arguments: Any, **options: Any) -> Any:
            self.enter(layer)
            try:
                return function(*arguments, **options)
            finally:
                self.leave()

        return measured

    def around_made(self, layer: str, make: Function) -> Function:
        @wraps(make)
        def making(*arguments: Any, **options: Any) -> Function:
            return self.around(layer, make(*arguments, **options))

        return making

    def enter(self, layer: str) -> None:
        self.turn()
        self.under_way.append(layer)

    def leave(self) -> None:
        self.turn()
        self.under_way.pop()

    def turn(self) -> None:
        now = perf_counter_ns()
        if self.under_way:
            self.spent[self.under_way[-1]] += now - self.since
        self.since = now


def replace(name: str, around: Callable[[Function], Function], put_back: ExitStack) -> None:
    owner, attribute = place(name)
    function = inspect.getattr_static(owner, attribute)
    if inspect.ismodule(owner):
        replace_in_modules(function, around(function), put_back)
    elif isinstance(function, classmethod | staticmethod):
        set_for_now(owner, attribute, type(function)(around(function.__func__)), put_back)
    else:
        set_for_now(owner, attribute, around(function), put_back)


def place(name: str) -> tuple[Any, str]:
    """The module or class that has what is named, and its name there. Raises NotThere."""
    path, _, attribute = name.rpartition(".")
    try:
        owner = import_module(path)
    except ModuleNotFoundError:
        owner = named(path, name)
    if not callable(getattr(owner, attribute, None)):
        raise NotThere(name)
    return owner, attribute


def named(path: str, name: str) -> Any:
    """A class in a module. Raises NotThere."""
    module, _, kind = path.rpartition(".")
    try:
        return getattr(import_module(module), kind)
    except (ModuleNotFoundError, AttributeError) as error:
        raise NotThere(name) from error


def replace_in_modules(function: Function, other: Function, put_back: ExitStack) -> None:
    """Also where it was imported by name."""
    for module in list(sys.modules.values()):
        for name, value in list(vars(module).items()):
            if value is function:
                set_for_now(module, name, other, put_back)


def set_for_now(owner: Any, name: str, value: Any, put_back: ExitStack) -> None:
    put_back.callback(setattr, owner, name, inspect.getattr_static(owner, name))
    setattr(owner, name, value)
