"""The list of books: its address, its filters, its rows and columns, and the list of genres that leads to it."""
