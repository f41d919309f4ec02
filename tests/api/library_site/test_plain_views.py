"""Views as REST framework's documents write them, in a version beside ours: they answer, fail and are documented."""

import json
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.cache import cache
from django.core.management import call_command
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.test.utils import override_settings
from django.urls import include, path
from django.utils.decorators import method_decorator
from django.views.decorators.vary import vary_on_headers
from drf_spectacular.utils import extend_schema
from openapi_spec_validator import OpenAPIV31SpecValidator
from rest_framework import generics, parsers, renderers, serializers, viewsets
from rest_framework.authentication import BasicAuthentication
from rest_framework.decorators import action, api_view
from rest_framework.exceptions import APIException
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import DefaultRouter, SimpleRouter
from rest_framework.urlpatterns import format_suffix_patterns
from rest_framework.views import APIView

from library_site import urls
from library_site.api.documents import openapi
from library_site.http.versions import get_versions
from tests.support.oauth_flows import create_key_header, create_user
from tests.support.pages import parse_error


class GroupSerializer(serializers.ModelSerializer[Group]):
    class Meta:
        model = Group
        fields = ["id", "name"]


class GroupViewSet(viewsets.ModelViewSet[Group]):
    queryset = Group.objects.order_by("pk")
    serializer_class = GroupSerializer

    @action(detail=True, methods=["post"])
    def shout(self, request: Request, pk: str, format: str | None = None) -> Response:
        group = self.get_object()
        group.name = group.name.upper()
        group.save()
        return Response(self.get_serializer(group).data)


class ChosenViewSet(GroupViewSet):
    queryset: Any = None

    def get_queryset(self) -> QuerySet[Group]:
        return Group.objects.exclude(name=self.request.headers.get("X-Hidden"))


class SignedViewSet(GroupViewSet):
    authentication_classes = [BasicAuthentication]


class ShownViewSet(GroupViewSet):
    renderer_classes = [renderers.JSONRenderer, renderers.BrowsableAPIRenderer]
    parser_classes = [parsers.JSONParser, parsers.FormParser, parsers.MultiPartParser]


@method_decorator(vary_on_headers("accept", "x-shelf"), name="dispatch")
class GroupList(generics.ListAPIView[Group]):
    queryset = Group.objects.order_by("pk")
    serializer_class = GroupSerializer


class MembersOnly(APIView):
    permission_classes = [IsAuthenticated]

    def get(self, request: Request, format: str | None = None) -> Response:
        return Response({"count": Group.objects.count()})


class Teapot(APIException):
    status_code = 418
    default_detail = "Short and stout"
    default_code = "teapot"


# Nested, as serializers of lists and of other serializers raise it.
NESTED: Any = {"parts": [{}, {"name": ["Too long."]}], "about": {"shelf": ["Too high."]}}
ERRORS = {"list": serializers.ValidationError(["Bad."]), "nested": serializers.ValidationError(NESTED)}


class Asked(APIView):
    required_permissions = {"post": ["books.add_book"]}

    def post(self, request: Request) -> Response:
        return Response({})


@extend_schema(summary="Make tea", request=GroupSerializer, responses={200: GroupSerializer}, tags=["Tea"])
@api_view(["POST"])
def make_tea(request: Request) -> Response:
    data: Any = request.data
    raise ERRORS.get(data.get("error"), Teapot())


@api_view(["GET"])
def greet(request: Request) -> Response:
    """Says hello."""
    auth: Any = request.auth
    may = request.user.has_perm("books.add_book")
    return Response({"version": request.version, "scopes": sorted(auth.scopes) if auth else [], "may": may})


class Shelf(StreamingHttpResponse):
    """A response with data of its own, which it streams."""

    def __init__(self, data: list[bytes]) -> None:
        self.data = data
        super().__init__(line for line in self.data)

    def close(self) -> None:
        super().close()
        self.data.clear()


router, slashed, closed = DefaultRouter(trailing_slash=False), SimpleRouter(trailing_slash=False), SimpleRouter()
closed.register("closed", GroupViewSet, basename="closed")
router.register("groups", GroupViewSet)
slashed.register("shown", ShownViewSet, basename="shown")
slashed.register("signed", SignedViewSet, basename="signed")
slashed.register("chosen", ChosenViewSet, basename="chosen")
patterns = [
    *router.urls,
    *closed.urls,
    path("", include(slashed.urls)),
    path("group-list", GroupList.as_view()),
    *format_suffix_patterns([path("members-only", MembersOnly.as_view())]),
    path("tea", make_tea),
    path("asked", Asked.as_view()),
    path("greeting", greet),
    path("shelf", lambda _request: Shelf([b"Emma"])),
]
urlpatterns = [
    path("api/v2/", include(([*patterns, *get_versions()[2].urlpatterns], "v2"))),
    path("api/", include(([*patterns, *get_versions()[1].urlpatterns], "v1"))),
    *urls.urlpatterns,
]
handler404 = urls.handler404


@pytest.fixture(autouse=True)
def served_views(api: httpx.Client) -> Iterator[None]:
    Group.objects.all().delete()
    with override_settings(ROOT_URLCONF=__name__):
        yield
    cache.clear()


with_each_version = pytest.mark.parametrize("home", ["/api", "/api/v2"])


@with_each_version
def test_a_viewset_of_a_router_reads_and_writes(api: httpx.Client, home: str) -> None:
    created = api.post(f"{home}/groups", json={"name": "Readers"})
    group = {"id": created.json()["id"], "name": "Readers"}
    address = f"{home}/groups/{group['id']}"
    assert (created.status_code, created.json(), api.get(f"{home}/groups").json()) == (201, group, [group])
    assert api.post(f"{address}/shout").json() == api.get(f"{address}.json").json() == group | {"name": "READERS"}
    assert api.patch(address, json={"name": "Few"}).json() == api.get(address).json() == group | {"name": "Few"}
    assert (api.delete(address).status_code, api.get(address).status_code) == (204, 404)


def test_a_response_may_have_data_of_its_own(api: httpx.Client) -> None:
    assert api.get("/api/v2/shelf").text == "Emma"


@with_each_version
def test_the_addresses_of_a_router_may_end_in_a_slash(api: httpx.Client, home: str) -> None:
    created = api.post(f"{home}/closed/", json={"name": "Readers"})
    address = f"{home}/closed/{created.json()['id']}/"
    assert (created.status_code, api.get(address).json()) == (201, created.json())
    moved = api.get(f"{address[:-1]}?a=1", follow_redirects=False)
    assert (moved.status_code, moved.headers["Location"]) == (301, f"{address}?a=1")
    with override_settings(APPEND_SLASH=False):
        assert api.get(address[:-1]).status_code == 404
    assert api.get(f"{home}/").json()["groups"].endswith(f"{home}/groups")
    assert api.get(f"{home}/groups/").json() == api.get(f"{home}/closed/").json() == [created.json()]
    assert api.get(f"{home}/books/").status_code == 200


def test_the_renderers_of_a_view_count(api: httpx.Client) -> None:
    address = "/api/v2/shown"
    assert api.get(address).headers["Content-Type"] == "application/json"
    for shown in (api.get(address, headers={"Accept": "text/html"}), api.get(f"{address}?format=api")):
        assert shown.headers["Content-Type"] == "text/html; charset=utf-8"
        assert shown.headers["Vary"] == "Accept, Cookie, Authorization, X-API-Key"
        assert "<h1>Shown List</h1>" in shown.text
    assert parse_error(api.get(address, headers={"Accept": "image/png"})) == (406, "NOT_ACCEPTABLE", [])
    assert parse_error(api.get("/api/v2/shown?format=xml")) == (404, "NOT_FOUND", [])


def test_the_parsers_of_a_view_count(api: httpx.Client) -> None:
    address = "/api/v2/shown"
    assert api.post(address, data={"name": "Form"}).status_code == 201
    assert api.post(address, files={"name": (None, "Parts")}).status_code == 201
    assert api.post(address, content=b"<a/>", headers={"Content-Type": "text/xml"}).status_code == 415
    assert api.post("/api/v2/groups", data={"name": "Form"}).status_code == 415


def test_the_vary_of_a_view_is_kept_and_names_no_header_twice(api: httpx.Client) -> None:
    assert api.get("/api/v2/group-list").headers["Vary"] == "accept, x-shelf, Authorization, X-API-Key"


def test_who_is_authenticated_in_another_way_has_their_permissions(api: httpx.Client) -> None:
    ann = User.objects.create_user("ann", password="secret")
    post = partial(api.post, "/api/v2/signed", json={"name": "Readers"})
    with override_settings(LIBRARY_ACCESS="protected"):
        assert (post().status_code, api.get("/api/v2/signed", auth=("ann", "secret")).status_code) == (401, 200)
        assert parse_error(post(auth=("ann", "secret"))) == (403, "FORBIDDEN", [])
        ann.user_permissions.set(Permission.objects.filter(codename__in=["add_group", "change_book", "add_book"]))
        assert post(auth=("ann", "secret")).status_code == 201


@pytest.mark.parametrize("name", ["groups", "chosen"])
def test_a_key_does_with_a_model_what_its_user_may(api: httpx.Client, name: str) -> None:
    """Also where `get_queryset` alone tells the model."""
    permissions = {"post": "auth.add_group", "patch": "auth.change_group", "delete": "auth.delete_group"}
    key = create_key_header(create_user("ann", ["books.add_book"]))
    for method, permission in permissions.items():
        group = Group.objects.create(name="Few")
        address = f"/api/v2/{name}" if method == "post" else f"/api/v2/{name}/{group.pk}"
        send = partial(api.request, method, address, json={"name": "Readers"})
        assert parse_error(send(headers=key)) == (403, "FORBIDDEN", [])
        may = create_key_header(create_user(method, [permission, "books.add_book"]))
        assert send(headers=may).is_success
        Group.objects.all().delete()
    assert api.get(f"/api/v2/{name}", headers=key).json() == []


def test_a_view_that_tells_no_model_is_written_to_by_superusers(api: httpx.Client) -> None:
    """Unless `required_permissions` tells who may. Nobody's key may do more with its scope alone."""
    key = create_key_header(create_user("ann", ["books.add_book"]))
    refused = api.post("/api/v2/tea", json={}, headers=key)
    assert parse_error(refused) == (403, "FORBIDDEN", [])
    assert "undeclared.permission" in refused.json()["error"]["message"]
    greeting, other = (api.request(method, "/api/v2/greeting", headers=key) for method in ("GET", "POST"))
    assert (greeting.json(), other.status_code) == ({"version": "v2", "scopes": ["read", "write"], "may": True}, 405)
    assert api.post("/api/v2/asked", json={}, headers=key).status_code == 200
    root = create_key_header(User.objects.create_superuser("root"))
    assert api.post("/api/v2/tea", json={}, headers=root).status_code == 418


def test_the_errors_of_a_view_have_the_shape_of_the_version_and_name_their_place(api: httpx.Client) -> None:
    teapot = api.post("/api/v2/tea", json={})
    assert teapot.json() == {
        "error": {"code": "TEAPOT", "message": "Short and stout", "requestId": teapot.headers["X-Request-ID"]}
    }
    assert (teapot.status_code, api.post("/api/tea", json={}).json()) == (418, {"detail": "Short and stout"})
    for name, fields in {"list": ["body"], "nested": ["parts.1.name", "about.shelf"]}.items():
        assert parse_error(api.post("/api/v2/tea", json={"error": name})) == (422, "VALIDATION_ERROR", fields)
    [problem] = api.post("/api/tea", json={"error": "list"}).json()["detail"]
    assert problem == {"loc": ["body"], "msg": "Bad.", "type": "model_attributes_type"}


def test_the_document_shows_a_view_by_its_name_without_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    plain_views = SimpleNamespace(urlpatterns=[path("api/v2/", include((patterns, "v2")))])
    call_command("spectacular", "--fail-on-warn", "--format=openapi-json", api_version="v2", urlconf=plain_views)
    document = json.loads(capsys.readouterr().out)
    OpenAPIV31SpecValidator(document).validate()
    paths = document["paths"]
    names = {
        (address, method): (operation["operationId"], operation["summary"], operation["tags"])
        for address, methods in paths.items()
        for method, operation in methods.items()
    }
    assert names["/api/v2/groups", "get"] == ("groups_list", "Group List", ["Groups"])
    assert names["/api/v2/groups/{id}", "delete"] == ("groups_destroy", "Group Instance", ["Groups"])
    assert names["/api/v2/groups/{id}/shout", "post"] == ("groups_shout_create", "Shout", ["Groups"])
    assert names["/api/v2/members-only", "get"] == ("members_only_retrieve", "Members Only", ["Members only"])
    assert names["/api/v2/greeting", "get"] == ("greeting_retrieve", "Greet", ["Greeting"])
    assert names["/api/v2/tea", "post"] == ("tea_create", "Make tea", ["Tea"])
    assert paths["/api/v2/greeting"]["get"]["description"] == "Says hello."


def test_the_document_of_all_versions_has_a_view_once_for_each(api: httpx.Client) -> None:
    document = openapi.build_document.__wrapped__((1, 2))
    assert document["paths"]["/api/v2/groups"]["get"]["operationId"] == "v2_groups_list"
    assert document["paths"]["/api/groups"]["get"]["operationId"] == "groups_list"
