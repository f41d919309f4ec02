"""The list of books: its address, filters, rows and columns, and the list of genres."""
