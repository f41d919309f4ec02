"""Access tokens: `access_tokens` makes and verifies them, `jwks` keeps their keys, `revocations` knows what ended."""
