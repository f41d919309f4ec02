"""The form of one book, its history and earlier states, and the pages of what was deleted or changed."""
