"""The profile of version 2: unknown parameters are refused, a client can pick members, and lists have ETags."""

from collections.abc import Collection

from rest_framework.exceptions import ErrorDetail

from books.api.actions import VersionProfile, add_etag
from books.api.conditional import Conditions
from books.read_model import Representation
from library_site.api.query import FieldErrors, Query, check_parameters, read_list
from library_site.api.suggestions import suggest_names
from library_site.http.fast_path import Answer


class VersionProfileV2(VersionProfile):
    def validate_query(self, query: Query, known_names: Collection[str] = ()) -> None:
        """Raises UnknownParameter, ValidationError."""
        check_parameters(query, known_names, ["fields"])

    def find_problems(self, query: Query) -> FieldErrors:
        suggestions = suggest_names(read_list(query, "fields") or [], self.representation.members)
        errors = [ErrorDetail(f'"{name}": {message}', "enum") for name, message in suggestions.items()]
        return {"fields": errors} if errors else {}

    def get_representation(self, query: Query) -> Representation:
        names = read_list(query, "fields")
        return self.representation if names is None else self.representation.with_fields(names)

    def finish_list(self, answer: Answer, conditions: Conditions) -> Answer:
        return add_etag(answer, conditions)
