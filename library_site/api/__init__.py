"""What REST views share: viewsets, serializers, decoders, queries, cursors, OpenAPI documents.

It imports `library_site.http`, and knows no resource.
"""
