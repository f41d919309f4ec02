"""The canonical form of each ISBN, for books that there are already as well."""

from typing import Any

from django.db import migrations, models

import books.fields
from books.isbn import normalize_isbn

BATCH = 5_000


def fill(apps: Any, schema_editor: Any) -> None:
    rows = apps.get_model("books", "Book").objects.order_by("pk").values_list("pk", "isbn")
    last: int | None = None
    with schema_editor.connection.cursor() as cursor:
        while batch := list((rows if last is None else rows.filter(pk__gt=last))[:BATCH]):
            found = [(canonical, pk) for pk, isbn in batch if (canonical := normalize_isbn(isbn))]
            cursor.executemany("UPDATE books_book SET isbn13 = %s WHERE id = %s", found)
            last = batch[-1][0]


class Migration(migrations.Migration):
    dependencies = [("books", "0003_librarians")]
    operations = [
        migrations.AddField(
            "book", "isbn13", books.fields.ISBN13Field("isbn", editable=False, max_length=13, null=True)
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AddIndex("book", models.Index(models.F("isbn13"), models.F("id"), name="book_by_isbn13")),
    ]
