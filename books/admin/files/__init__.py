"""The pages on which librarians import and export files."""
