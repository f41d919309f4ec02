"""Remembers what ships, for the compiled path: it serves that, as it was defined, and nothing else.

It knows by identity. A subclass, a view with arguments of its own (`as_view(queryset=...)`) and a decorated view are
other objects, so Django serves them. `list_changes` says what else may need every request.
"""

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any, TypeVar

from django.conf import settings
from django.core.cache import close_caches
from django.core.handlers.base import reset_urlconf
from django.core.signals import got_request_exception, request_finished, request_started
from django.db import close_old_connections, reset_queries
from django.urls import URLPattern, get_resolver
from django.utils.module_loading import import_string

from library_site.db.postgresql.lost_connections import close_lost_connection

T = TypeVar("T")

# Django's own receivers of the signals of requests, and ours.
KNOWN_RECEIVERS = {reset_queries, close_old_connections, close_lost_connection, close_caches, reset_urlconf}

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
    """Decorates a class whose work the compiled path does: at its definition nobody has changed it yet."""
    for base in cls.__mro__[:-1]:
        definitions.setdefault(base, read_definition(base))
    return cls


def read_definition(cls: type) -> dict[str, Any]:
    return {name: value for name, value in vars(cls).items() if name not in SET_LATER}


def list_changes() -> list[Any]:
    """Returns the settings, receivers and classes that are not as they ship: any of them may need every request."""
    shipped, found = read_settings(settings.SHIPPED), read_settings(settings)
    changes: list[Any] = [name for name in shipped if found[name] != shipped[name]]
    known = {id(receiver) for receiver in KNOWN_RECEIVERS}
    signals = (request_started, request_finished, got_request_exception)
    changes += [receiver for signal in signals for (key, _), receiver, *_ in signal.receivers if key not in known]
    return changes + [cls for cls, definition in definitions.items() if read_definition(cls) != definition]


def read_settings(values: Any) -> dict[str, Any]:
    """Leaves out the middleware of `for_pages`, which sees no request of a program, and addresses after ours."""
    middleware = [path for path in values.MIDDLEWARE if "is_for_pages" not in vars(import_string(path))]
    versions = get_resolver(values.ROOT_URLCONF).url_patterns[: len(settings.API_URLS)]
    return {"MIDDLEWARE": middleware, "REST_FRAMEWORK": values.REST_FRAMEWORK, "ROOT_URLCONF": versions}
