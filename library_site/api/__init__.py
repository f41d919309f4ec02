"""What REST views share: viewsets, serializers, decoders, queries, cursors, OpenAPI documents,
and the compiled path, which answers in their place.

It imports `library_site.http`, and knows no resource.
"""
