"""Measures the exclusive time of layers of functions, which are given by their dotted names and stay unchanged."""

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


class FunctionNotFound(Exception):
    """There is no function of this name."""


class Stopwatch:
    """Adds the time to the innermost active layer: `times` has nanoseconds by layer. For one thread."""

    def __init__(self) -> None:
        self.times: dict[str, int] = defaultdict(int)
        self.active_layers: list[str] = []
        self.last_change = 0

    @contextmanager
    def measure(self, layers: Mapping[str, Iterable[str]]) -> Iterator[None]:
        """Measures these functions in every module or class that has them.

        A name that ends in () is a factory: the function that it returns is measured. Raises FunctionNotFound.
        """
        with ExitStack() as stack:
            for layer, names in layers.items():
                for name in names:
                    wrap = self.wrap_factory if name.endswith("()") else self.wrap_function
                    replace_function(name.removesuffix("()"), partial(wrap, layer), stack)
            yield

    def wrap_function(self, layer: str, function: Function) -> Function:
        @wraps(function)
        def wrapper(*arguments: Any, **options: Any) -> Any:
            self.enter(layer)
            try:
                return function(*arguments, **options)
            finally:
                self.leave()

        return wrapper

    def wrap_factory(self, layer: str, factory: Function) -> Function:
        @wraps(factory)
        def wrapper(*arguments: Any, **options: Any) -> Function:
            return self.wrap_function(layer, factory(*arguments, **options))

        return wrapper

    def enter(self, layer: str) -> None:
        self.add_time()
        self.active_layers.append(layer)

    def leave(self) -> None:
        self.add_time()
        self.active_layers.pop()

    def add_time(self) -> None:
        now = perf_counter_ns()
        if self.active_layers:
            self.times[self.active_layers[-1]] += now - self.last_change
        self.last_change = now


def replace_function(name: str, wrap: Callable[[Function], Function], stack: ExitStack) -> None:
    owner, attribute = find_owner(name)
    function = inspect.getattr_static(owner, attribute)
    if inspect.ismodule(owner):
        replace_in_modules(function, wrap(function), stack)
    elif isinstance(function, classmethod | staticmethod):
        set_attribute(owner, attribute, type(function)(wrap(function.__func__)), stack)
    else:
        set_attribute(owner, attribute, wrap(function), stack)


def find_owner(name: str) -> tuple[Any, str]:
    """The module or class that has the function, and its name there. Raises FunctionNotFound."""
    path, _, attribute = name.rpartition(".")
    try:
        owner = import_module(path)
    except ModuleNotFoundError:
        owner = find_class(path, name)
    if not callable(getattr(owner, attribute, None)):
        raise FunctionNotFound(name)
    return owner, attribute


def find_class(path: str, name: str) -> Any:
    """The class with this path. Raises FunctionNotFound."""
    module, _, kind = path.rpartition(".")
    try:
        return getattr(import_module(module), kind)
    except (ModuleNotFoundError, AttributeError) as error:
        raise FunctionNotFound(name) from error


def replace_in_modules(function: Function, replacement: Function, stack: ExitStack) -> None:
    """Replaces the function in all modules, since others may have imported it by name."""
    for module in list(sys.modules.values()):
        for name, value in list(vars(module).items()):
            if value is function:
                set_attribute(module, name, replacement, stack)


def set_attribute(owner: Any, name: str, value: Any, stack: ExitStack) -> None:
    """Sets an attribute until the stack closes."""
    stack.callback(setattr, owner, name, inspect.getattr_static(owner, name))
    setattr(owner, name, value)
