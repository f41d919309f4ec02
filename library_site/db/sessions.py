"""Django's sessions in the database, with a stricter check of session keys."""

from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore


class SessionStore(DatabaseSessionStore):
    def _validate_session_key(self, key: str) -> bool:
        """Accepts letters and digits only, as our keys have. PostgreSQL would raise an error for a cookie with NUL."""
        return bool(super()._validate_session_key(key)) and key.isalnum()  # type: ignore[misc]  # not in the stubs

    def decode(self, session_data: bytes | str) -> dict[str, Any]:
        """Sessions of earlier releases name Django's own backend."""
        values: dict[str, Any] = super().decode(session_data)
        if values.get(BACKEND_SESSION_KEY) == "django.contrib.auth.backends.ModelBackend":
            values[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
        return values
