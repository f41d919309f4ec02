"""Who may do what: people, their apps, API keys and the authorization server. It imports library_site alone."""
