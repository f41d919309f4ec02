"""The WSGI application: its layers in order."""

import gc
import os
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.wsgi import get_wsgi_application

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "library_site.settings")


def build_application(pages: "WSGIApplication") -> "WSGIApplication":
    """The layers from the innermost to the outermost, around a handler for programs and one for pages."""
    # These modules need Django set up.
    from library_site.http.access_log import log_access
    from library_site.http.bodies import buffer_body, normalize_content_type
    from library_site.http.fast_path import try_fast_path
    from library_site.http.handlers import APIHandler, route_request
    from library_site.http.request_id import assign_request_id
    from library_site.http.versioning import negotiate_version
    from library_site.http.versions import DEFAULT_VERSION, VERSIONS

    application = buffer_body(normalize_content_type(route_request(APIHandler(), pages)))
    if settings.COMPILED_PATH:
        application = try_fast_path(application)
    return assign_request_id(log_access(negotiate_version(application, VERSIONS, DEFAULT_VERSION)))


# First: it sets Django up.
pages_handler = get_wsgi_application()
application = build_application(pages_handler)
# Imported modules are no garbage: collecting them again and again takes a twentieth of the time of a write.
gc.freeze()
gc.set_threshold(20_000)
