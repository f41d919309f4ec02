"""What the OpenAPI documents say of every resource."""
