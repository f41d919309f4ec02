"""What the check of a fault found."""

from typing import NamedTuple


class Finding(NamedTuple):
    """A fault, its result in words, and the number of errors: above all, of lost events."""

    fault: str
    result: str
    error_count: int
