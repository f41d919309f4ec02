"""The URL patterns of API keys in version 2."""

from django.urls import path, re_path

from oauth.api.v2.views import APIKeyViewSet

urlpatterns = [
    path("api-keys", APIKeyViewSet.as_view({"get": "list", "post": "create"}), name="api-keys"),
    re_path(
        r"^api-keys/(?P<key_id>[0-9a-f]{12})$",
        APIKeyViewSet.as_view({"get": "retrieve", "delete": "destroy"}),
        name="api-key",
    ),
]
