"""Django's sessions in the database, with a stricter check of session keys."""

from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore

# Processes of the release before know the second one alone. The next release may store the first.
BACKENDS = settings.LOCKOUT_BACKEND, "django.contrib.auth.backends.ModelBackend"


class SessionStore(DatabaseSessionStore):
    """Stores sessions with the name of Django's backend, as earlier releases did."""

    def _validate_session_key(self, key: str) -> bool:
        """Accepts letters and digits only, as our keys have. PostgreSQL would raise an error for a cookie with NUL."""
        return bool(super()._validate_session_key(key)) and key.isalnum()  # type: ignore[misc]  # not in the stubs

    def encode(self, session_dict: dict[str, Any]) -> str:
        return str(super().encode(name_backend(session_dict, *BACKENDS)))

    def decode(self, session_data: bytes | str) -> dict[str, Any]:
        return name_backend(super().decode(session_data), *reversed(BACKENDS))


def name_backend(values: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    is_old = values.get(BACKEND_SESSION_KEY) == old
    return {**values, BACKEND_SESSION_KEY: new} if is_old else values
