"""Accounts, OAuth apps, API keys, scopes and the authorization server. It imports only library_site."""
