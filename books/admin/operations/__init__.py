"""The pages of operations on many books: bulk edits, list actions, duplicates and the progress of operations."""
