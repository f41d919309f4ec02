"""Programs with clients that others' generators make of the OpenAPI document: `make clients` makes and runs them."""
