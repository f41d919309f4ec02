"""API keys in version 2. Later versions reuse it."""
