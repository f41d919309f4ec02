"""What the OpenAPI document of version 2 says of books: every status that can occur, with examples."""
