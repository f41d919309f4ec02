"""What a Django developer may rely on, with the app of docs/extending.md. `tests/served` runs it with its settings."""
