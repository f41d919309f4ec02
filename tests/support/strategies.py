"""Hypothesis settings, and strategies for JSON bodies."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

hypothesis_settings = settings(
    # Half of the profile's: each example sends at least one request to a real database.
    max_examples=settings().max_examples // 2,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
# Includes lone surrogates, which JSON can escape.
any_text = st.text(st.characters(exclude_categories=()), max_size=70)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda values: st.lists(values, max_size=4) | st.dictionaries(any_text, values, max_size=4),
    max_leaves=12,
)
typed_fields = {
    "title": any_text,
    "author": any_text,
    "year": st.integers(-(2**33), 2**33) | st.floats(),
    "isbn": any_text,
    "genre": any_text,
}
any_fields = {name: values | any_json for name, values in typed_fields.items()}
bodies = (
    st.fixed_dictionaries(typed_fields) | st.fixed_dictionaries({}, optional=any_fields | {"id": any_json}) | any_json
)
