"""Measures the memory of Python's objects while no garbage is collected."""

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


class Memory:
    """The largest amount that the last block took, and what it left behind, in bytes."""

    peak = 0
    rest = 0

    @contextmanager
    def measure(self) -> Iterator[None]:
        start, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        yield
        rest, peak = tracemalloc.get_traced_memory()
        self.peak, self.rest = peak - start, rest - start


@contextmanager
def trace_memory() -> Iterator[Memory]:
    # What is garbage already is not traced, and to look for it takes long beside so many tests.
    gc.disable()
    tracemalloc.start()
    try:
        yield Memory()
    finally:
        tracemalloc.stop()
        gc.enable()
