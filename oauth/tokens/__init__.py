"""Access tokens: `access_tokens` generates and verifies them, `jwks` has the keys, `revocations` the revoked ones."""
