"""The books: models, history, search, files, API and admin pages. It imports webhooks, oauth and library_site."""
