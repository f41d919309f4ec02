from django.db import models

from books.models import Book


class Note(models.Model):
    """Goes with its book."""

    book = models.ForeignKey(Book, models.CASCADE, related_name="notes")
    text = models.CharField(max_length=20, default="")

    def __str__(self) -> str:
        return self.text


class Quotation(models.Model):
    """Goes with its note."""

    note = models.ForeignKey(Note, models.CASCADE)

    def __str__(self) -> str:
        return f"of {self.note}"


class Cover(models.Model):
    book = models.OneToOneField(Book, models.SET_NULL, null=True, related_name="cover")

    def __str__(self) -> str:
        return f"of {self.book}"


class Reservation(models.Model):
    book = models.ForeignKey(Book, models.PROTECT, related_name="reservations")

    def __str__(self) -> str:
        return f"of {self.book}"


class Exhibit(models.Model):
    book = models.ForeignKey(Book, models.RESTRICT, related_name="exhibits")

    def __str__(self) -> str:
        return f"of {self.book}"


class Stamp(models.Model):
    book = models.ForeignKey(Book, models.DO_NOTHING, related_name="stamps")

    def __str__(self) -> str:
        return f"of {self.book}"


class Shelf(models.Model):
    books = models.ManyToManyField(Book, related_name="shelves")

    def __str__(self) -> str:
        return f"shelf {self.pk}"
