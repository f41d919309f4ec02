"""The books: what they are, who changed them, and every door to them. It imports webhooks, oauth and library_site."""
