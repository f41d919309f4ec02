"""Names of the table of books and of its columns that people read. The database stays as it is."""

import django.core.validators
from django.db import migrations, models

import books.fields


class Migration(migrations.Migration):
    dependencies = [
        ("books", "0016_operations"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="book",
            options={"verbose_name": "book", "verbose_name_plural": "books"},
        ),
        migrations.AlterField(
            model_name="book",
            name="author",
            field=models.CharField(max_length=500, verbose_name="author"),
        ),
        migrations.AlterField(
            model_name="book",
            name="available",
            field=models.BooleanField(db_default=True, default=True, verbose_name="available"),
        ),
        migrations.AlterField(
            model_name="book",
            name="created_at",
            field=books.fields.TimestampField(editable=False, verbose_name="added"),
        ),
        migrations.AlterField(
            model_name="book",
            name="genre",
            field=models.CharField(max_length=200, verbose_name="genre"),
        ),
        migrations.AlterField(
            model_name="book",
            name="title",
            field=models.CharField(max_length=1000, verbose_name="title"),
        ),
        migrations.AlterField(
            model_name="book",
            name="updated_at",
            field=books.fields.TimestampField(editable=False, verbose_name="changed"),
        ),
        migrations.AlterField(
            model_name="book",
            name="year",
            field=models.IntegerField(
                validators=[
                    django.core.validators.MinValueValidator(-2147483648),
                    django.core.validators.MaxValueValidator(2147483647),
                ],
                verbose_name="year",
            ),
        ),
    ]
