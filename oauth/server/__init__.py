"""The authorization server (RFC 6749), on django-oauth-toolkit: its endpoints (`views`) and consent page (`consent`).

`validators` has our rules for clients, codes and tokens. It imports the tokens, and no page of an account.
"""
