"""Builds the WSGI application: Django's handler, and before it the compiled path."""

import gc
import os
from typing import TYPE_CHECKING

import django
from django.conf import settings

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "library_site.settings")


def build_application() -> "WSGIApplication":
    # These modules can be imported only after Django is set up.
    from library_site.api.compiled_path import wrap_handler
    from library_site.http.handlers import LibraryHandler

    handler = LibraryHandler()
    return wrap_handler(handler) if settings.COMPILED_PATH else handler


django.setup(set_prefix=False)
if settings.TRACES_ENABLED:
    # Before the handler is built, which has a middleware for it.
    from library_site.monitoring.tracing import start_tracing

    start_tracing()
application = build_application()
# Imported modules are never garbage. To scan them again and again takes a twentieth of the time of a write.
gc.freeze()
gc.set_threshold(20_000)
