"""What the OpenAPI documents say of credentials, and the API keys of people in version 2."""
