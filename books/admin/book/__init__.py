"""The form of one book, its history and earlier states, and the pages of deleted books and recent changes."""
