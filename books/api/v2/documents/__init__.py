"""The OpenAPI document of version 2 for books: every status that can occur, with examples."""
