"""The rate limit in tests. A library declares the class of its count before any view is imported (REST_FRAMEWORK)."""

from collections.abc import Callable

import pytest
from rest_framework.views import APIView

from library_site.api import shipped
from oauth.throttling import CallerThrottle


def count_requests(monkeypatch: pytest.MonkeyPatch, timer: Callable[[], float]) -> None:
    """Lets all views count their requests by this clock, as if the library had started so."""
    monkeypatch.setattr(APIView, "throttle_classes", [CallerThrottle])
    monkeypatch.setattr(CallerThrottle, "timer", staticmethod(timer))
    for cls in (APIView, CallerThrottle):
        monkeypatch.setitem(shipped.definitions, cls, shipped.read_definition(cls))
