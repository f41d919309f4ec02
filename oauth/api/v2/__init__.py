"""API keys in version 2. A later version serves the same."""
