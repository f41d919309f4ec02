"""The whole URL map."""

from django.contrib import admin
from django.urls import include, path, re_path

from library_site.views import Docs, Document, Root

urlpatterns = [
    path("", Root.as_view(), name="root"),
    re_path(r"^docs/?$", Docs.as_view(), name="docs"),
    re_path(r"^openapi\.json/?$", Document.as_view(), name="openapi"),
    path("api/", include("books.urls")),
    path("admin/", admin.site.urls),
]

handler400 = "library_site.errors.bad_request"
handler404 = "library_site.errors.not_found"
handler500 = "library_site.errors.server_error"
