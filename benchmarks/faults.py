"""Checks that no event and no change is lost when things fail: `python -m benchmarks.faults` from the root."""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table

from benchmarks.bursts import check_bursts
from benchmarks.kills import check_kills
from benchmarks.support.arguments import Names, Number, note, parse_options
from benchmarks.support.load import require_postgres
from benchmarks.support.writers import Finding

FAULTS: dict[str, Callable[[Namespace], Iterator[Finding]]] = {"kills": check_kills, "bursts": check_bursts}


def main() -> int:
    options = parse_options(
        "benchmarks.faults",
        __doc__,
        only=Names(FAULTS),
        seconds=Number(10, 36_000, 600, "for which processes and connections are killed at random"),
        bursts=Number(1, 100, 10, "on each database, with 40 quiet seconds after each"),
    )
    require_postgres()
    table, error_count = Table("Fault", "Result", "Errors"), 0
    for name in options.only:
        note(name)
        for finding in FAULTS[name](options):
            note(f"  {finding.result}")
            table.add_row(finding.fault, finding.result, str(finding.error_count))
            error_count += finding.error_count
    Console(width=120).print(table)
    return 1 if error_count else 0


if __name__ == "__main__":
    sys.exit(main())
