"""The URL patterns of the pages, and of each version in the version table."""

from django.contrib import admin
from django.http import Http404
from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularSwaggerOauthRedirectView

from library_site.http import errors
from library_site.http.versions import KNOWN_VERSIONS, get_versions
from library_site.views import DocsView, DocumentView, RootView

VERSION_NUMBERS = tuple(get_versions())

urlpatterns = [
    # First, because each pattern before the match costs microseconds.
    *(
        path(f"{version.home.removeprefix('/')}/", include((version.urlpatterns, version.name)))
        for version in reversed(KNOWN_VERSIONS)
    ),
    path("", RootView.as_view(), name="root"),
    path("docs/oauth2-redirect.html", SpectacularSwaggerOauthRedirectView.as_view()),
    re_path(r"^docs/?$", DocsView.as_view(versions=VERSION_NUMBERS), name="docs"),
    re_path(r"^openapi\.json/?$", DocumentView.as_view(versions=VERSION_NUMBERS), name="openapi"),
    *(
        re_path(rf"^docs/v{number}/?$", DocsView.as_view(versions=VERSION_NUMBERS, number=number))
        for number in VERSION_NUMBERS
    ),
    *(
        re_path(rf"^openapi/v{number}\.json/?$", DocumentView.as_view(versions=[number]), name=f"openapi-v{number}")
        for number in VERSION_NUMBERS
    ),
    path("", include("oauth.urls")),
    path("", include("webhooks.api.urls")),
    # Django's redirect from a row to its public page raises an error for a NUL.
    re_path(r"^admin/r/(?!\d+/[^\0]+$)", errors.not_found, {"exception": Http404()}),
    path("admin/", admin.site.urls),
]

handler400 = "library_site.http.errors.bad_request"
handler403 = "library_site.http.errors.permission_denied"
handler404 = "library_site.http.errors.not_found"
handler500 = "library_site.http.errors.server_error"
