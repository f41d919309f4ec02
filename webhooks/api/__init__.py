"""The address where other services send events, and what the OpenAPI documents say of those that are sent."""
