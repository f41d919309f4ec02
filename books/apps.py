from django.apps import AppConfig


class BooksConfig(AppConfig):
    name = "books"
    verbose_name = "Library"

    def ready(self) -> None:
        # Importing registers its handlers.
        from books import mirroring  # noqa: F401
