"""The pages of operations on many books: bulk edits, actions on a list, duplicates, and what a worker does."""
