"""Calls the actions for Django REST framework; the versions themselves are `books.api.v1` and `books.api.v2`."""

from functools import partial
from typing import Any, ClassVar, cast

from django.http import HttpResponse
from django.utils import timezone
from django_filters.rest_framework.backends import DjangoFilterBackend
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ModelViewSet

from books.api import actions
from books.api.actions import Caller, VersionProfile, check_existence_first, require_book_exists
from books.api.conditional import Conditions
from books.api.filters import BookFilter
from books.api.links import get_list_path
from books.api.refusals import word_refusal
from books.models import Book
from books.read_model import Representation
from library_site.api.query import Query
from library_site.api.responses import make_empty_response
from library_site.api.viewsets import APIViewSet
from library_site.http.fast_path import Answer


class BookViewSet(APIViewSet, ModelViewSet[Book]):
    """A version declares its serializers, filters and pages here. Its profile are made of these declarations."""

    queryset = Book.objects.order_by("pk")
    filter_backends = [DjangoFilterBackend]
    lookup_url_kwarg = "book_id"
    profile_class: ClassVar[type[VersionProfile]] = VersionProfile
    profile: ClassVar[VersionProfile]
    representation: ClassVar[Representation]
    version_name: ClassVar[str]
    filterset_class: ClassVar[type[BookFilter]]
    # What DELETE answers.
    deletion: ClassVar[Answer]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.profile = cls.profile_class(
            cls.representation, cls.version_name, cls.deletion, cls.filterset_class, cast("Any", cls.pagination_class)
        )

    def list(self, request: Request) -> HttpResponse:
        conditions = Conditions.from_environ(request.META)
        return make_response(actions.list_books(self.profile, read_query(request), conditions))

    def retrieve(self, request: Request, book_id: str) -> HttpResponse:
        conditions = Conditions.from_environ(request.META)
        return make_response(actions.read_book(self.profile, book_id, read_query(request), conditions))

    def create(self, request: Request) -> HttpResponse:
        read_values = partial(self.read_values, request)
        answer = actions.create_book(
            self.profile,
            read_query(request),
            read_values,
            get_list_path(request),
            get_caller(request),
            timezone.now(),
        )
        return make_response(answer)

    def update(self, request: Request, book_id: str) -> HttpResponse:
        read_values, conditions = partial(self.read_values, request), Conditions.from_environ(request.META)
        answer = actions.change_book(
            self.profile, book_id, read_query(request), read_values, conditions, get_caller(request), timezone.now()
        )
        return make_response(answer)

    def destroy(self, request: Request, book_id: str) -> HttpResponse:
        conditions = Conditions.from_environ(request.META)
        actor = get_caller(request)
        answer = actions.delete_book(self.profile, book_id, read_query(request), conditions, actor, timezone.now())
        return make_response(answer)

    def handle_exception(self, exc: Exception) -> Response:
        """An unknown id comes before what else is wrong with a request."""
        try:
            if "book_id" in self.kwargs:
                check_existence_first(self.kwargs["book_id"], exc, self.require_exists)
        except Exception as error:
            return super().handle_exception(error)
        return super().handle_exception(word_refusal(exc, self.request))

    def require_exists(self, pk: int) -> None:
        """Raises BookNotFound if the action knows nothing by this id."""
        require_book_exists(pk)


def get_caller(request: Request) -> Caller:
    return cast("Caller", request.auth)


def read_query(request: Request) -> Query:
    return Query(request.path, request.query_params)


def make_response(answer: Answer) -> HttpResponse:
    if answer.body:
        return HttpResponse(answer.body, "application/json", answer.status, headers=answer.headers)
    return make_empty_response(answer.status, answer.headers)
