"""Django's backend for PostgreSQL with time limits for each statement; Django loads `base`."""
