"""Charts of columns with round numbers beside them. Templates draw them as SVG, in a box of 100 by 100 units."""

from collections.abc import Iterable, Sequence
from itertools import count
from typing import NamedTuple

from django.utils.html import escape
from django.utils.safestring import mark_safe

SIZE = 100.0
# The share of its space that a column fills.
FILLED = 0.76
# At most so many lines lie above the base line.
MAX_STEPS = 4
# At most so many columns are cut, each so many times higher than all others.
MAX_CUT, FAR = 3, 4
# The gap of a column that is cut, from the top.
GAP_Y, GAP_HEIGHT = 8, 4


class Part(NamedTuple):
    """A rectangle in units of the box. `series` counts from 1, 0 is a gap; `title` is its tooltip."""

    x: float
    y: float
    width: float
    height: float
    series: int
    title: str

    def __str__(self) -> str:
        """Returns SVG, so templates render the object as a rectangle. `format_html` takes long for hundreds of them."""
        box = f'x="{self.x:.2f}" y="{self.y:.2f}" width="{self.width:.2f}" height="{self.height:.2f}"'
        svg = f'<rect class="series-{self.series}" {box}><title>{escape(self.title)}</title></rect>'
        return mark_safe(svg)  # noqa: S308  # the title is escaped


class Column(NamedTuple):
    """A column of the chart, and a row of its table."""

    label: str
    total: int
    values: Sequence[int]
    parts: Sequence[Part]
    # Whether it is higher than the chart.
    is_cut: bool
    address: str = ""


class Tick(NamedTuple):
    """A line of the chart, and its number."""

    number: int
    y: float


class Chart(NamedTuple):
    columns: Sequence[Column]
    # From the top to the base line.
    ticks: Sequence[Tick]

    @property
    def cut(self) -> list[Column]:
        return [column for column in self.columns if column.is_cut]


def build_chart(
    labels: Sequence[str], rows: Sequence[Sequence[int]], addresses: Sequence[str], *, can_cut: bool = False
) -> Chart:
    """Returns a column for each label. Its values are stacked, the first at the bottom.

    With `can_cut`, a few columns that are far higher than all others do not make those low.
    """
    totals = [sum(values) for values in rows]
    numbers = list_round_numbers(find_highest(totals) if can_cut else max(totals))
    top, place = numbers[-1], SIZE / len(rows)
    columns = [
        build_column(number * place, place, label, values, top)._replace(address=address)
        for number, (label, values, address) in enumerate(zip(labels, rows, addresses, strict=True))
    ]
    return Chart(columns, [Tick(number, SIZE - SIZE * number / top) for number in reversed(numbers)])


def find_highest(totals: Sequence[int]) -> int:
    """Returns the highest total that is not cut."""
    ordered = sorted(totals, reverse=True)
    cut = (number for number in range(MAX_CUT, 0, -1) if ordered[number - 1] > FAR * ordered[number] > 0)
    return ordered[next(cut, 0)]


def list_round_numbers(highest: int) -> list[int]:
    """Returns round numbers at equal distances, from 0 to the first one that is not below the highest."""
    steps = (factor * 10**power for power in count() for factor in (1, 2, 5))
    step = next(step for step in steps if step * MAX_STEPS >= highest)
    return list(range(0, max(highest, 1) + step, step))


def build_column(x: float, place: float, label: str, values: Sequence[int], top: int) -> Column:
    total = sum(values)
    left, width = x + place * (1 - FILLED) / 2, place * FILLED
    parts = list(stack(left, width, label, values, max(top, total)))
    if total > top:
        parts.append(Part(left, GAP_Y, width, GAP_HEIGHT, 0, f"{label}: {total}"))
    return Column(label, total, values, parts, is_cut=total > top)


def stack(x: float, width: float, label: str, values: Sequence[int], highest: int) -> Iterable[Part]:
    bottom = SIZE
    for series, value in enumerate(values, 1):
        if value:
            height = SIZE * value / highest
            bottom -= height
            yield Part(x, bottom, width, height, series, f"{label}: {value}")
