"""What a book is, also for processes without models: its fields, the comparison of its texts, its ISBN."""
