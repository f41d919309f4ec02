"""The static files that `collectstatic` copies and the server sends."""

from django.apps import apps
from django.contrib.staticfiles.finders import get_finders

from library_site.apps import StaticFilesConfig

# The server takes so much of a response at once, and needs no thread until a client has read it.
MAX_FILE_BYTES = 1_600_000


def test_no_file_keeps_a_thread_while_it_is_read() -> None:
    config = apps.get_app_config("staticfiles")
    assert isinstance(config, StaticFilesConfig)
    files = [(path, storage) for finder in get_finders() for path, storage in finder.list(config.ignore_patterns)]
    assert "drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js" in [path for path, _ in files]
    assert [path for path, storage in files if storage.size(path) > MAX_FILE_BYTES] == []
