"""The whole URL map, and the versions of the interface that it serves."""

from django.conf import settings
from django.contrib import admin
from django.http import Http404
from django.urls import include, path, re_path
from django.views.defaults import page_not_found
from drf_spectacular.views import SpectacularSwaggerOauthRedirectView

from books.api.bulk import LARGEST_BODY
from books.urls import version_1, version_2
from library_site.http.versioning import ROOT, Lifecycle, Version, served
from library_site.shapes import detail, envelope
from library_site.views import Docs, Document, Root

LIFECYCLES = {number: Lifecycle(**told) for number, told in settings.API_LIFECYCLES.items()}
# The last is the latest.
VERSIONS = served(
    [Version(1, ROOT, detail), Version(2, f"{ROOT}/v2", envelope, larger_bodies={"/books/bulk": LARGEST_BODY})],
    LIFECYCLES,
)
EVERY = tuple(VERSIONS)
# What addresses mean that name none: the contract's own paths do not.
UNNAMED = 1

urlpatterns = [
    # First: every address before a match costs microseconds.
    path("api/v2/", include((version_2, "v2"))),
    path("api/", include((version_1, "v1"))),
    path("", Root.as_view(), name="root"),
    path("docs/oauth2-redirect.html", SpectacularSwaggerOauthRedirectView.as_view()),
    re_path(r"^docs/?$", Docs.as_view(versions=EVERY), name="docs"),
    re_path(r"^openapi\.json/?$", Document.as_view(versions=EVERY), name="openapi"),
    *(re_path(rf"^docs/v{number}/?$", Docs.as_view(versions=EVERY, url_name=f"openapi-v{number}")) for number in EVERY),
    *(
        re_path(rf"^openapi/v{number}\.json/?$", Document.as_view(versions=[number]), name=f"openapi-v{number}")
        for number in EVERY
    ),
    path("", include("oauth.urls")),
    path("", include("webhooks.api.urls")),
    # Django's way from a row to its public page, of which there are none, fails on ids that it does not expect.
    re_path(r"^admin/r/", page_not_found, {"exception": Http404()}),
    path("admin/", admin.site.urls),
]

handler400 = "library_site.http.errors.bad_request"
handler404 = "library_site.http.errors.not_found"
handler500 = "library_site.http.errors.server_error"
