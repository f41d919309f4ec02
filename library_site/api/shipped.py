"""Remembers what ships, for the compiled path: it serves that, as it was defined, and nothing else.

It knows by identity. A subclass, a view with arguments of its own (`as_view(queryset=...)`) and a decorated view are
other objects, so Django serves them. Who changes a class after its definition turns the compiled path off.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from django.urls import URLPattern

T = TypeVar("T")

# REST framework's `as_view` and serializers, and Python's `copy`, set them later.
SET_LATER = {"name", "description", "suffix", "detail", "basename", "_creation_counter", "__slotnames__"}

shipped_views: set[Callable[..., Any]] = set()
definitions: dict[type, dict[str, Any]] = {}


def ship_patterns(patterns: list[URLPattern]) -> list[URLPattern]:
    """Call it with the patterns of a shipped viewset."""
    shipped_views.update(pattern.callback for pattern in patterns)
    return patterns


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
