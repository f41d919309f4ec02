from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_migrate, post_save
from django.utils.translation import gettext_lazy as _


class BooksConfig(AppConfig):
    name = "books"
    verbose_name = _("Library")

    def ready(self) -> None:
        # The imports register checks and the kinds of events.
        from books.models import Change
        from books.search import triggers
        from books.writing import events, id_sequence  # noqa: F401

        register_sentences()
        register_operations()
        if settings.LIBRARY_PROCESS == "web":
            # The views are remembered as they ship, before the `ready` of another app can change them.
            from books.api.v1 import views as views_v1  # noqa: F401
            from books.api.v2 import views as views_v2  # noqa: F401
        post_migrate.connect(triggers.create_missing_triggers, sender=self)
        post_migrate.connect(id_sequence.raise_id_sequence, sender=self)
        # Only fixtures save a change with its model.
        post_save.connect(id_sequence.reserve_changed_id, sender=Change)


def register_operations() -> None:
    """Registers the tasks of a worker, and the filters that select their books."""
    from books.admin.list import filters  # noqa: F401
    from books.api import filters as api_filters  # noqa: F401
    from books.files import export_tasks, import_tasks  # noqa: F401
    from books.operations import selection_tasks, undo  # noqa: F401


def register_sentences() -> None:
    """Registers sentences that describe the permissions of librarians."""
    from oauth.accounts.roles import register_sentence

    register_sentence(_("Find and read books"), "books.view_book")
    register_sentence(_("Add books"), "books.add_book")
    register_sentence(_("Change books, and mark them as lent or available"), "books.change_book")
    register_sentence(_("Delete books"), "books.delete_book")
    register_sentence(_("See who changed which book"), "books.view_history")
    register_sentence(_("Edit many books together"), "books.bulk_edit_books")
    register_sentence(_("Merge books that are there twice"), "books.merge_books")
    register_sentence(_("Import files of books"), "books.import_books")
    register_sentence(_("Cancel and undo what others changed together"), "books.undo_others_operations")
