"""Hypothesis strategies and settings."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

thorough = settings(
    # Half of Hypothesis's own number: each is a request to a real database, or more.
    max_examples=50,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
# Also with lone surrogates, which JSON can escape.
any_text = st.text(st.characters(exclude_categories=()), max_size=70)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda values: st.lists(values, max_size=4) | st.dictionaries(any_text, values, max_size=4),
    max_leaves=12,
)
right = {
    "title": any_text,
    "author": any_text,
    "year": st.integers(-(2**33), 2**33) | st.floats(),
    "isbn": any_text,
    "genre": any_text,
}
wrong = {name: values | any_json for name, values in right.items()}
bodies = st.fixed_dictionaries(right) | st.fixed_dictionaries({}, optional=wrong | {"id": any_json}) | any_json
