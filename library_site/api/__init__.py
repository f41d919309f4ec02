"""Shared parts of REST views: viewsets, serializers, decoders, queries, cursors, OpenAPI documents, and the compiled
path, a faster way to the same responses.

It imports `library_site.http`, and no resource.
"""
