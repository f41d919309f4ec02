"""Django's backend for SQLite with a queue of writers; Django loads `base`."""
