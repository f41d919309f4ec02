"""Addresses of version 2 before the library's: its viewsets, decorated and overridden."""

from django.db.models import Prefetch
from django.urls import path
from django.utils.decorators import method_decorator
from django.views.decorators.cache import cache_control
from rest_framework import serializers
from rest_framework.authentication import BasicAuthentication
from rest_framework.decorators import api_view, authentication_classes
from rest_framework.generics import CreateAPIView, ListAPIView
from rest_framework.parsers import MultiPartParser
from rest_framework.renderers import BrowsableAPIRenderer
from rest_framework.response import Response
from rest_framework.settings import api_settings
from reviews.models import Review

from books.api.v1.pagination import SkipLimitPagination
from books.api.v1.views import BookViewSetV1
from books.api.v2.serializers import BookCreateSerializer, BookSerializer
from books.api.v2.views import BookViewSetV2
from books.models import Book

LIST, DETAIL = {"get": "list", "post": "create"}, {"get": "retrieve", "put": "update", "delete": "destroy"}


class PoliteSerializer(BookCreateSerializer):
    def validate_title(self, title):
        if "darn" in title.lower():
            raise serializers.ValidationError("Mind your words.")
        return title.strip().capitalize()

    def validate(self, values):
        if values["title"] == values["author"]:
            raise serializers.ValidationError("Nobody is called like a book.")
        return values


class PoliteViewSet(BookViewSetV2):
    body_serializers = BookViewSetV2.body_serializers | {"create": PoliteSerializer}


class LoudSerializer(BookCreateSerializer):
    note = serializers.CharField(write_only=True, required=False)

    class Meta(BookCreateSerializer.Meta):
        fields = (*BookCreateSerializer.Meta.fields, "note")

    def create(self, values):
        note = values.pop("note")
        return super().create({**values, "genre": note})

    def update(self, book, values):
        return super().update(book, {**values, "title": values["title"].upper()})


class LoudViewSet(BookViewSetV2):
    body_serializers = {"create": LoudSerializer, "update": LoudSerializer}

    def make_etag(self, book):
        return f'"{book.pk}-{book.version}-{book.reviews.count()}"'

    def list(self, request, **kwargs):
        response = super().list(request, **kwargs)
        titles = [book["title"] for book in response.data["results"]]
        return Response({"titles": titles})


class Volume(Book):
    class Meta:
        app_label = "beside"
        proxy = True

    @property
    def spine(self):
        return f"{self.author}: {self.title}"


class VolumeSerializer(serializers.ModelSerializer):
    spine = serializers.CharField(read_only=True)

    class Meta:
        model = Volume
        fields = ["title", "author", "year", "isbn", "genre", "spine"]


class VolumeViewSet(BookViewSetV2):
    """What REST framework's documents begin with: one serializer for all."""

    queryset = Volume.objects.order_by("pk")
    serializer_class = VolumeSerializer
    body_serializers = {}
    filterset_class = None


class BestReviewsSerializer(BookSerializer):
    best = serializers.PrimaryKeyRelatedField(many=True, read_only=True)

    class Meta(BookSerializer.Meta):
        fields = ["id", "best"]


class BestReviewsViewSet(BookViewSetV2):
    serializer_class = BestReviewsSerializer
    queryset = Book.objects.prefetch_related(Prefetch("reviews", Review.objects.filter(stars=5), to_attr="best"))


class PraisedViewSet(BookViewSetV2):
    queryset = None

    def get_queryset(self):
        return Book.objects.filter(reviews__stars=5).distinct()


class FewBooks(SkipLimitPagination):
    default_limit, max_limit = 1, 2
    limit_query_param, offset_query_param = "size", "from"


class SavingViewSet(BookViewSetV2):
    def perform_create(self, serializer):
        serializer.save(genre="Saved")


class BrowsedViewSet(BookViewSetV2):
    renderer_classes = [BrowsableAPIRenderer]


class PlainBookSerializer(serializers.ModelSerializer):
    class Meta:
        model = Book
        fields = ["id", "title", "author"]


class PlainBooks(CreateAPIView):
    queryset = Book.objects.all()
    serializer_class = PlainBookSerializer

    def perform_create(self, serializer):
        serializer.save(year=1815, isbn="1", genre="Novel")
        if serializer.instance.title == "No":
            raise serializers.ValidationError("No.")


class LinkedBookSerializer(serializers.HyperlinkedModelSerializer):
    class Meta:
        model = Book
        fields = ["url", "title"]
        extra_kwargs = {"url": {"view_name": "v2:book", "lookup_url_kwarg": "book_id"}}


class LinkedBooks(ListAPIView):
    queryset = Book.objects.order_by("pk")
    serializer_class = LinkedBookSerializer


@api_view()
@authentication_classes([BasicAuthentication, *api_settings.DEFAULT_AUTHENTICATION_CLASSES])
def who_am_i(request):
    return Response({"user": request.user.get_username(), "is_staff": request.user.is_staff})


CachedViewSet = method_decorator(cache_control(max_age=60), name="dispatch")(type("Cached", (BookViewSetV2,), {}))
urlpatterns = [
    path("polite", PoliteViewSet.as_view(LIST)),
    path("best/<str:book_id>", BestReviewsViewSet.as_view(DETAIL)),
    path("praised", PraisedViewSet.as_view(LIST)),
    path("few", BookViewSetV1.as_view(LIST, pagination_class=FewBooks)),
    path("fewer", BookViewSetV2.as_view(LIST, pagination_class=FewBooks)),
    path("forms", VolumeViewSet.as_view(LIST, parser_classes=[MultiPartParser])),
    path("saving", SavingViewSet.as_view(LIST)),
    path("cached", CachedViewSet.as_view(LIST)),
    path("plain-books", PlainBooks.as_view()),
    path("browsed", BrowsedViewSet.as_view(LIST)),
    path("who", who_am_i),
    path("loud", LoudViewSet.as_view(LIST)),
    path("loud/<str:book_id>", LoudViewSet.as_view(DETAIL)),
    path("spines", VolumeViewSet.as_view(LIST)),
    path("spines/<str:book_id>", VolumeViewSet.as_view({**DETAIL, "patch": "partial_update"})),
    path("volumes", LinkedBooks.as_view()),
]
