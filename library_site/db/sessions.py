"""Sessions in the database."""

from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore


class SessionStore(DatabaseSessionStore):
    def _validate_session_key(self, key: str) -> bool:
        """Ours are letters and digits; a cookie with NUL would reach PostgreSQL, which cannot hold it."""
        return bool(super()._validate_session_key(key)) and key.isalnum()  # type: ignore[misc]  # not in the stubs
