"""Django's sessions in the database, with a stricter check of session keys."""

from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore


class SessionStore(DatabaseSessionStore):
    def _validate_session_key(self, key: str) -> bool:
        """Our keys are letters and digits; a cookie with NUL would fail in PostgreSQL, which cannot store it."""
        return bool(super()._validate_session_key(key)) and key.isalnum()  # type: ignore[misc]  # not in the stubs
