"""The description of credentials in the OpenAPI documents, and API keys in version 2."""
