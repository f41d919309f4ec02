"""An app beside the library: its models refer to books in each way that Django has."""
