"""Which books a list holds."""

from typing import Any

from django.db.models import QuerySet
from django_filters import CharFilter
from django_filters.rest_framework.backends import DjangoFilterBackend
from django_filters.rest_framework.filterset import FilterSet
from django_filters.utils import translate_validation
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.views import APIView

from books.fields import folded
from books.models import FOLDED, Book
from books.serializers import NO_NUL

MAX_LENGTH = 500


@extend_schema_field({"type": "string", "maxLength": MAX_LENGTH, **NO_NUL})
class Partial(CharFilter):
    """Finds the text anywhere in the column, whatever its case; `%`, `_` and `\\` stand for themselves."""

    def __init__(self, field: str, **options: Any) -> None:
        super().__init__(FOLDED[field], "contains", max_length=MAX_LENGTH, strip=False, **options)

    def filter(self, qs: QuerySet[Book], value: str) -> QuerySet[Book]:
        found: QuerySet[Book] = super().filter(qs, folded(value))
        return found


class BookFilter(FilterSet):
    author = Partial("author", help_text="Case-insensitive partial match on the author.")
    genre = Partial("genre", help_text="Case-insensitive partial match on the genre.")


class StrictFilterBackend(DjangoFilterBackend):
    """Refuses what it cannot use, naming the problems of paging and filters at once."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        problems = view.paginator.problems(request)
        filterset = self.filterset_if_asked(request, queryset, view)
        if filterset and not filterset.is_valid():
            problems |= translate_validation(filterset.errors).detail
        if problems:
            raise ValidationError(problems)
        return filterset.qs if filterset else queryset

    def filterset_if_asked(self, request: Request, queryset: QuerySet[Any], view: APIView) -> FilterSet | None:
        """A filter set costs as much as the rest of the request: none is made where no filter is named."""
        known = self.get_filterset_class(view, queryset).base_filters
        return self.get_filterset(request, queryset, view) if known.keys() & request.query_params.keys() else None
