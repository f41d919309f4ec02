"""How bodies come in and files go out: their limits, and compression."""
