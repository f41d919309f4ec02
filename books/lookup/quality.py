"""Which books are probably wrong: without a valid ISBN, with an improbable year, or there twice. None is forbidden."""

from datetime import date

from django.db.models import Q

# The first books were printed with movable type in the middle of the century; some libraries have older ones.
MIN_PROBABLE_YEAR = 1400
HAS_NO_ISBN = Q(isbn13=None)


def is_probable_year(year: int, today: date) -> bool:
    """Books are announced for the next year."""
    return MIN_PROBABLE_YEAR <= year <= today.year + 1


def has_improbable_year(today: date) -> Q:
    return Q(year__lt=MIN_PROBABLE_YEAR) | Q(year__gt=today.year + 1)
