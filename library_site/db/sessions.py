"""Django's sessions in the database, with a stricter check of session keys."""

from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore


class SessionStore(DatabaseSessionStore):
    def _validate_session_key(self, key: str) -> bool:
        """Accepts letters and digits only, as our keys have. PostgreSQL would raise an error for a cookie with NUL."""
        return bool(super()._validate_session_key(key)) and key.isalnum()  # type: ignore[misc]  # not in the stubs
