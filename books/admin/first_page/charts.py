"""Computes charts that templates draw as SVG: columns and bars in a box of 100 by 100 units."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

SIZE = 100.0
# The share of its space that a column fills.
FILLED = 0.76


class Part(NamedTuple):
    """A rectangle in units of the box. `series` counts from 1; `title` is its tooltip."""

    x: float
    y: float
    width: float
    height: float
    series: int
    title: str


class Column(NamedTuple):
    """A column of the chart, and a row of its table."""

    label: str
    total: int
    values: Sequence[int]
    parts: Sequence[Part]
    address: str = ""


def build_chart_columns(labels: Sequence[str], rows: Sequence[Sequence[int]], addresses: Sequence[str]) -> list[Column]:
    """Returns a column for each label. Its values are stacked, the first at the bottom."""
    highest = max(map(sum, rows), default=0) or 1
    place = SIZE / (len(rows) or 1)
    return [
        Column(label, sum(values), values, list(stack(number * place, place, label, values, highest)), address)
        for number, (label, values, address) in enumerate(zip(labels, rows, addresses, strict=True))
    ]


def stack(x: float, place: float, label: str, values: Sequence[int], highest: int) -> Iterable[Part]:
    bottom = SIZE
    for series, value in enumerate(values, 1):
        if value:
            height = SIZE * value / highest
            bottom -= height
            yield Part(x + place * (1 - FILLED) / 2, bottom, place * FILLED, height, series, f"{label}: {value}")
