from django.apps import AppConfig


class LibrarySiteConfig(AppConfig):
    name = "library_site"

    def ready(self) -> None:
        # Importing registers them.
        from library_site import checks  # noqa: F401
        from library_site.db import connections  # noqa: F401
