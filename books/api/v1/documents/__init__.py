"""The OpenAPI document of version 1 for books: every status that can occur, with examples."""
