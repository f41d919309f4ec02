"""Books with their search index, history, operations and imports, and the groups of the people who keep them.

Partial matches by index: on PostgreSQL indexes have the trigrams, on SQLite FTS5, which leaves the texts in the book
table. Django remakes a table of SQLite for most changes of its columns and constraints, and the triggers are gone then;
`books/search/index.py` makes them again.
"""

from typing import Any

from django.conf import settings
from django.contrib.postgres.operations import TrigramExtension
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Left, Length
from django.db.models.lookups import LessThanOrEqual

from books.fields import FoldedField, ISBN13Field, ISBNField, TimestampField

REPLACED = """
    0001_books 0002_trigram_indexes 0003_librarians 0004_isbn13 0005_kept_answers 0006_trigrams_on_sqlite
    0007_mirrored_books 0008_stored_responses 0009_history 0010_history_permission 0011_restored_mirrors
    0012_short_pending_lists 0013_isbn_by_code_point 0014_saved_views 0015_book_by_genre 0016_operations 0017_labels
    0018_duplicates 0019_imports 0020_exported_workbooks 0023_operation_results
""".split()
YEARS = (-2147483648, 2147483647)
MAX_LENGTHS = {"title": 1000, "author": 500, "isbn": 64, "genre": 200}
FOLDED = ("title_folded", "author_folded", "genre_folded")
# A filter reads all of a pending list, so it is short (PostgreSQL manual, GIN, fast update).
GIN_INDEX = """
    CREATE INDEX book_{0}_trigrams ON books_book USING gin ({0} gin_trgm_ops) WITH (gin_pending_list_limit = 256)
"""
COLUMNS = ", ".join(FOLDED)
NEW, OLD = (", ".join(f"{row}.{column}" for column in ("id", *FOLDED)) for row in ("new", "old"))
ADD = f"INSERT INTO books_trigrams (rowid, {COLUMNS}) VALUES ({NEW})"
# FTS5 has its commands inserted into a column named like the table (SQLite, FTS5, 6).
REMOVE = f"INSERT INTO books_trigrams (books_trigrams, rowid, {COLUMNS}) VALUES ('delete', {OLD})"
EVENTS = {
    "insert": f"AFTER INSERT ON books_book BEGIN {ADD}; END",
    "update": f"AFTER UPDATE OF {COLUMNS} ON books_book BEGIN {REMOVE}; {ADD}; END",
    "delete": f"AFTER DELETE ON books_book BEGIN {REMOVE}; END",
}
TRIGGERS = {f"book_trigrams_{name}": f"CREATE TRIGGER book_trigrams_{name} {event}" for name, event in EVENTS.items()}
FTS_INDEX = [
    # The columns are folded as the library folds: the tokenizer must not fold in its own way. Which columns of which
    # book have a trigram is enough to narrow a search, where is not kept.
    f"""
        CREATE VIRTUAL TABLE books_trigrams
        USING fts5
        ({COLUMNS}, content='books_book', content_rowid='id', detail=column, tokenize='trigram case_sensitive 1')
    """,
    # Merged half as often as by default: a write costs half as much, and a search a tenth more.
    "INSERT INTO books_trigrams (books_trigrams, rank) VALUES ('automerge', 8)",
    *TRIGGERS.values(),
]
# By model: with the names of its permissions, and who has them.
LIBRARIANS, HEAD_LIBRARIANS = ["Librarians", "Head librarians"], ["Head librarians"]
PERMISSIONS = {
    "book": ({f"{action}_book": f"Can {action} book" for action in ("add", "change", "delete", "view")}, LIBRARIANS),
    "change": ({"view_history": "Can view the history of books"}, LIBRARIANS),
    "operation": (
        {
            "bulk_edit_books": "Can edit many books together",
            "undo_others_operations": "Can cancel and undo the operations of others",
        },
        HEAD_LIBRARIANS,
    ),
    "distinctbooks": ({"merge_books": "Can merge books"}, HEAD_LIBRARIANS),
    "importfile": ({"import_books": "Can import books"}, HEAD_LIBRARIANS),
}


def build_length_check(column: str, length: int) -> models.CheckConstraint:
    return models.CheckConstraint(
        condition=LessThanOrEqual(Length(column), length), name=f"book_{column}_at_most_{length}"
    )


def refer_to_operation() -> Any:
    return models.ForeignKey(
        "books.operation", models.SET_NULL, db_constraint=False, db_index=False, null=True, related_name="+"
    )


def create_search_index(apps: Any, schema_editor: Any) -> None:
    is_sqlite = schema_editor.connection.vendor == "sqlite"
    for statement in FTS_INDEX if is_sqlite else map(GIN_INDEX.format, FOLDED):
        schema_editor.execute(statement)


def create_groups(apps: Any, schema_editor: Any) -> None:
    """Django makes permissions after all migrations, too late for a group that holds them."""
    get_content_type, get_permission, get_group = (
        apps.get_model(name).objects.get_or_create
        for name in ("contenttypes.ContentType", "auth.Permission", "auth.Group")
    )
    for model, (permissions, groups) in PERMISSIONS.items():
        content_type, _ = get_content_type(app_label="books", model=model)
        for codename, name in permissions.items():
            permission, _ = get_permission(content_type=content_type, codename=codename, defaults={"name": name})
            for group_name in groups:
                group, _ = get_group(name=group_name)
                group.permissions.add(permission)


class Migration(migrations.Migration):
    initial = True
    replaces = [("books", name) for name in REPLACED]
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("webhooks", "0001_squashed_0009_event_traceparent"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        TrigramExtension(),
        migrations.CreateModel(
            "Book",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("title", models.CharField("title", max_length=1000)),
                ("author", models.CharField("author", max_length=500)),
                (
                    "year",
                    models.IntegerField("year", validators=[MinValueValidator(YEARS[0]), MaxValueValidator(YEARS[1])]),
                ),
                (
                    "isbn",
                    ISBNField(
                        "ISBN", error_messages={"unique": "Another book has this ISBN."}, max_length=64, unique=True
                    ),
                ),
                ("genre", models.CharField("genre", max_length=200)),
                ("available", models.BooleanField("available", db_default=True, default=True)),
                ("created_at", TimestampField("added", editable=False)),
                ("updated_at", TimestampField("changed", editable=False)),
                ("version", models.PositiveIntegerField(db_default=1, default=1, editable=False)),
                ("title_folded", FoldedField("title", editable=False)),
                ("author_folded", FoldedField("author", editable=False)),
                ("genre_folded", FoldedField("genre", editable=False)),
                ("isbn13", ISBN13Field("isbn", editable=False, max_length=13, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(Left("title_folded", 100), "id", name="book_by_title"),
                    models.Index(Left("author_folded", 100), "id", name="book_by_author"),
                    models.Index("year", "id", name="book_by_year"),
                    models.Index("created_at", "id", name="book_by_created_at"),
                    models.Index("id", condition=Q(available=False), name="book_lent"),
                    models.Index("isbn13", "id", name="book_by_isbn13"),
                    models.Index(Left("genre_folded", 100), "id", name="book_by_genre"),
                ],
                "constraints": [
                    *(build_length_check(column, length) for column, length in MAX_LENGTHS.items()),
                    models.CheckConstraint(condition=Q(year__range=YEARS), name="book_year_within_32_bits"),
                ],
                "verbose_name": "book",
                "verbose_name_plural": "books",
            },
        ),
        migrations.CreateModel(
            "MirroredBook",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("remote_id", models.BigIntegerField()),
                ("version", models.BigIntegerField()),
                ("book", models.OneToOneField("books.book", models.CASCADE, null=True, related_name="mirrored")),
                (
                    "source",
                    models.ForeignKey("webhooks.source", models.CASCADE, db_index=False, related_name="mirrored_books"),
                ),
                ("former_book_id", models.BigIntegerField(null=True)),
            ],
            options={"constraints": [models.UniqueConstraint(fields=("source", "remote_id"), name="mirrored_once")]},
        ),
        migrations.CreateModel(
            "StoredResponse",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("fingerprint", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField()),
                ("headers", models.JSONField()),
                ("body", models.BinaryField()),
                ("stored_at", TimestampField(db_column="kept_at", db_index=True)),
            ],
            options={"db_table": "books_keptanswer"},
        ),
        migrations.CreateModel(
            "Actor",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "channel",
                    models.CharField(
                        choices=[
                            ("v1", "interface, version 1"),
                            ("v2", "interface, version 2"),
                            ("bulk", "bulk request"),
                            ("admin", "admin"),
                            ("import", "import"),
                            ("command", "command line"),
                            ("mirror", "mirroring"),
                            ("operation", "operation"),
                        ],
                        max_length=10,
                    ),
                ),
                ("user_id", models.BigIntegerField(db_index=True, null=True)),
                ("identity", models.CharField(max_length=300, unique=True)),
                ("user_name", models.CharField(blank=True, max_length=150)),
                ("app_name", models.CharField(blank=True, max_length=255)),
                ("api_key_name", models.CharField(blank=True, max_length=100)),
                ("source_name", models.CharField(blank=True, max_length=100)),
            ],
        ),
        migrations.CreateModel(
            "Operation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=20)),
                ("created_at", TimestampField()),
                ("actor", models.ForeignKey("books.actor", models.DO_NOTHING, db_constraint=False, db_index=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("running", "running"),
                            ("done", "done"),
                            ("cancelled", "cancelled"),
                            ("failed", "failed"),
                        ],
                        db_default="done",
                        default="done",
                        max_length=10,
                    ),
                ),
                ("parameters", models.JSONField(null=True)),
                ("token", models.CharField(max_length=64, null=True)),
                ("cursor", models.BigIntegerField(null=True)),
                ("last", models.BigIntegerField(null=True)),
                ("matched", models.IntegerField(null=True)),
                ("changed", models.IntegerField(null=True)),
                ("unchanged", models.IntegerField(null=True)),
                ("refused", models.IntegerField(null=True)),
                ("missed", models.IntegerField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField("finished at", null=True)),
                ("next_at", models.DateTimeField(null=True)),
                ("error", models.TextField(blank=True, db_default="", default="")),
                ("lease", models.UUIDField(null=True)),
                ("attempted", models.PositiveSmallIntegerField("attempted", db_default=0, default=0)),
                ("claimed", models.PositiveSmallIntegerField(db_default=0, default=0)),
                (
                    "undo_of",
                    models.ForeignKey(
                        "books.operation",
                        models.DO_NOTHING,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        related_name="undos",
                    ),
                ),
                ("result", models.JSONField(null=True)),
            ],
            options={
                "indexes": [models.Index("next_at", condition=Q(next_at__isnull=False), name="operation_waiting")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(token__isnull=False), fields=("token",), name="operation_token"
                    ),
                    models.UniqueConstraint(
                        condition=Q(undo_of__isnull=False) & Q(state__in=["waiting", "running", "done"]),
                        fields=("undo_of",),
                        name="operation_undo",
                    ),
                ],
                "permissions": [
                    ("bulk_edit_books", "Can edit many books together"),
                    ("undo_others_operations", "Can cancel and undo the operations of others"),
                ],
            },
        ),
        migrations.CreateModel(
            "Change",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("book_id", models.BigIntegerField()),
                ("version", models.PositiveIntegerField()),
                (
                    "kind",
                    models.PositiveSmallIntegerField(
                        choices=[(1, "created"), (2, "changed"), (3, "deleted"), (4, "restored"), (5, "merged")]
                    ),
                ),
                ("at", TimestampField()),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
                ("actor", models.ForeignKey("books.actor", models.DO_NOTHING, db_constraint=False, db_index=False)),
                (
                    "operation",
                    models.ForeignKey(
                        "books.operation", models.DO_NOTHING, db_constraint=False, db_index=False, null=True
                    ),
                ),
            ],
            options={
                "permissions": [("view_history", "Can view the history of books")],
                "default_permissions": (),
                "indexes": [
                    models.Index("at", "id", name="change_by_time"),
                    models.Index("actor", "at", "id", name="change_by_actor"),
                    models.Index("kind", "at", "id", name="change_by_kind"),
                    models.Index("operation", "id", condition=Q(operation__isnull=False), name="change_by_operation"),
                ],
                "constraints": [models.UniqueConstraint(fields=("book_id", "version"), name="change_version")],
            },
        ),
        migrations.CreateModel(
            "ListSettings",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        settings.AUTH_USER_MODEL,
                        models.CASCADE,
                        primary_key=True,
                        related_name="list_settings",
                        serialize=False,
                    ),
                ),
                ("columns", models.JSONField()),
                ("rows", models.PositiveSmallIntegerField()),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            "SavedView",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=100)),
                ("query", models.TextField()),
                ("columns", models.JSONField()),
                (
                    "user",
                    models.ForeignKey(
                        settings.AUTH_USER_MODEL, models.CASCADE, db_index=False, related_name="saved_views"
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [models.UniqueConstraint(fields=("user", "name"), name="saved_view_name")],
            },
        ),
        migrations.CreateModel(
            "OperationProblem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("subject", models.BigIntegerField()),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("no_match", "no longer matched"),
                            ("isbn_in_use", "another book has the ISBN"),
                            ("invalid", "the new text is empty or too long"),
                            ("changed_since", "changed since"),
                            ("deleted_since", "deleted since"),
                            ("exists", "restored since"),
                        ],
                        max_length=20,
                    ),
                ),
                ("detail", models.CharField(blank=True, max_length=500)),
                (
                    "operation",
                    models.ForeignKey("books.operation", models.CASCADE, db_index=False, related_name="problems"),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index("operation", "id", name="operation_problems")],
            },
        ),
        migrations.CreateModel(
            "DistinctBooks",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("first_id", models.BigIntegerField()),
                ("second_id", models.BigIntegerField()),
            ],
            options={
                "permissions": [("merge_books", "Can merge books")],
                "default_permissions": (),
                "constraints": [models.UniqueConstraint(fields=("first_id", "second_id"), name="distinct_books")],
            },
        ),
        migrations.CreateModel(
            "ColumnMapping",
            fields=[
                ("header", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("mapping", models.JSONField()),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            "ImportFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=255)),
                ("size", models.BigIntegerField()),
                ("fingerprint", models.CharField(max_length=300)),
                ("created_at", TimestampField(db_index=True)),
                ("encoding", models.CharField(blank=True, max_length=20)),
                ("rules", models.JSONField(null=True)),
                ("check_counts", models.JSONField(default=dict)),
                ("import_counts", models.JSONField(default=dict)),
                ("check_operation", refer_to_operation()),
                ("import_operation", refer_to_operation()),
                ("user", models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="import_files")),
                ("preview_operation", refer_to_operation()),
            ],
            options={"permissions": [("import_books", "Can import books")], "default_permissions": ()},
        ),
        migrations.CreateModel(
            "ImportChunk",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("content", models.BinaryField()),
                ("file", models.ForeignKey("books.importfile", models.CASCADE, db_index=False, related_name="chunks")),
            ],
            options={
                "default_permissions": (),
                "constraints": [models.UniqueConstraint(fields=("file", "number"), name="import_chunk_number")],
            },
        ),
        migrations.CreateModel(
            "ImportFinding",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("operation_id", models.BigIntegerField()),
                ("kind", models.CharField(max_length=10)),
                ("position", models.BigIntegerField()),
                ("line", models.BigIntegerField()),
                ("reason", models.TextField(blank=True)),
                ("book_id", models.BigIntegerField(null=True)),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
                (
                    "file",
                    models.ForeignKey("books.importfile", models.CASCADE, db_index=False, related_name="findings"),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index("file", "operation_id", "kind", "position", name="import_finding")],
            },
        ),
        migrations.CreateModel(
            "ExportChunk",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("content", models.BinaryField()),
                ("created_at", TimestampField(db_index=True)),
                (
                    "operation",
                    models.ForeignKey("books.operation", models.CASCADE, db_index=False, related_name="export_chunks"),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [models.UniqueConstraint(fields=("operation", "number"), name="export_chunk_number")],
            },
        ),
        migrations.RunPython(create_search_index, migrations.RunPython.noop),
        migrations.RunPython(create_groups, migrations.RunPython.noop),
    ]
