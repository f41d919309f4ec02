"""Request bodies and streamed responses: limits and compression."""
