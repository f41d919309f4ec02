"""Remembers what ships, for the compiled path: it serves that, as it was defined, and nothing else.

It knows by identity. A subclass, a view with arguments of its own (`as_view(queryset=...)`) and a decorated view are
other objects, so Django serves them. Who changes a class after its definition turns the compiled path off.
"""

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any, TypeVar

from django.urls import URLPattern

T = TypeVar("T")

# REST framework's `as_view` and serializers, and Python's `copy`, set them later.
SET_LATER = {"name", "description", "suffix", "detail", "basename", "_creation_counter", "__slotnames__"}

# By the function of a view, what compiles the routes of a pattern with it.
shipped_views: dict[Callable[..., Any], Callable[[URLPattern], Iterable[Any]]] = {}
definitions: dict[type, dict[str, Any]] = {}


def ship_patterns(
    patterns: list[URLPattern], compile_pattern: Callable[[URLPattern], Iterable[Any]]
) -> list[URLPattern]:
    """Call it with the patterns of a shipped viewset."""
    shipped_views.update((pattern.callback, compile_pattern) for pattern in patterns)
    return patterns


def compile_routes(patterns: Iterable[URLPattern]) -> list[Any]:
    """Returns the compiled routes of the first patterns that ship: any other before them could hide their addresses."""
    shipped = takewhile(lambda pattern: pattern.callback in shipped_views, patterns)
    return [route for pattern in shipped for route in shipped_views[pattern.callback](pattern)]


def remember(cls: type[T]) -> type[T]:
    """Decorates a class whose work the compiled path does. Whoever can change it has imported it, so it is remembered
    as it was.
    """
    for base in cls.__mro__[:-1]:
        definitions.setdefault(base, read_definition(base))
    return cls


def read_definition(cls: type) -> dict[str, Any]:
    return {name: value for name, value in vars(cls).items() if name not in SET_LATER}


def list_changed() -> list[type]:
    """Returns the classes that are not as they were defined."""
    return [cls for cls, definition in definitions.items() if read_definition(cls) != definition]
