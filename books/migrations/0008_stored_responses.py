"""StoredResponse is the name of KeptAnswer now; its table and column stay, so that old code still reads them."""

from django.db import migrations

import books.fields


class Migration(migrations.Migration):
    dependencies = [("books", "0007_mirrored_books")]
    operations = [
        migrations.AlterModelTable("KeptAnswer", "books_keptanswer"),
        migrations.RenameModel("KeptAnswer", "StoredResponse"),
        migrations.AlterField(
            "StoredResponse", "kept_at", books.fields.TimestampField(db_index=True, db_column="kept_at")
        ),
        migrations.RenameField("StoredResponse", "kept_at", "stored_at"),
    ]
