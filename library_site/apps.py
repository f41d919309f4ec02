from django.apps import AppConfig


class LibrarySiteConfig(AppConfig):
    name = "library_site"

    def ready(self) -> None:
        # Importing registers them.
        from library_site import checks, connections  # noqa: F401
