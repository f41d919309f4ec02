"""The tables of books, their changes, and operations on many books. Each module has related tables."""

from books.models.book import (
    DERIVED_FIELDS,
    FIELD_DEFAULTS,
    FOLDED_COLUMNS,
    SORT_PREFIX_LENGTH,
    YEAR_RANGE,
    Book,
    DistinctBooks,
    LentBook,
    SearchText,
    SortPrefix,
    Summary,
    UnrecordedWrite,
    sort_expression,
)
from books.models.history import LEND_TEXTS, RETURN_TEXTS, Actor, Change, IsLoan
from books.models.imports import ColumnMapping, ImportChunk, ImportCorrection, ImportFile, ImportFinding
from books.models.operations import ExportChunk, Operation, OperationProblem
from books.models.responses import StoredResponse
from books.models.saved_views import ListSettings, SavedView
