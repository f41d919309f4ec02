from django.apps import AppConfig


class BooksConfig(AppConfig):
    name = "books"
    verbose_name = "Library"

    def ready(self) -> None:
        # The imports register the kinds of events, then the handlers of received events, which need the kinds.
        from books import events, mirroring  # noqa: F401
