from django.apps import AppConfig


class BooksConfig(AppConfig):
    name = "books"
    verbose_name = "Library"

    def ready(self) -> None:
        # Importing registers the kinds of events, and the handlers of received ones.
        from books import events, mirroring  # noqa: F401
