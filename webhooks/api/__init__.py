"""The endpoint that receives events of other services, and the OpenAPI description of outgoing events."""
