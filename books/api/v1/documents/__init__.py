"""What the OpenAPI document of version 1 says of books: every status that can occur, with examples."""
