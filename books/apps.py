from django.apps import AppConfig
from django.db.models.signals import post_migrate


class BooksConfig(AppConfig):
    name = "books"
    verbose_name = "Library"

    def ready(self) -> None:
        # The imports register checks, the kinds of events, then the handlers of received ones, which need the kinds.
        from books import checks, events, id_sequence, mirroring, search_index  # noqa: F401

        post_migrate.connect(search_index.create_missing_triggers, sender=self)
        post_migrate.connect(id_sequence.raise_id_sequence, sender=self)
