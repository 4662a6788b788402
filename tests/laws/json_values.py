"""Strategies for every JSON value, with the awkward ones made common."""

from hypothesis import strategies as st

from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path, Selector, get_at

AWKWARD_NUMBERS = (0, -0.0, 0.0, 1, 1.0, -1, 1e21, 10**21, 1e-7, 5e-324, 1.7976931348623157e308, 0.1)
EDGES = (2**53, 2**53 - 1, 2**53 + 1, 2**60, 2.0**53, 2.0**60, 1152921504606847000, 2**63, 2**64, -(2**63) - 1)
AWKWARD_TEXT = ("", "a", "\u20ac", "\r", "\U0001f600", "\ue000", "\ufb33", "\x7f", "\x1f", '"\\', "1", "true", "é")

text = st.sampled_from(AWKWARD_TEXT) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = (
    st.sampled_from(AWKWARD_NUMBERS)
    | st.sampled_from(EDGES)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
)
scalars = st.none() | st.booleans() | numbers | text
json_values: st.SearchStrategy[Json] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)

# Few keys and small values, so that two of them often meet.
small_scalars = st.sampled_from((None, True, False, 0, 1, 1.0, "", "x"))
small_json: st.SearchStrategy[Json] = st.recursive(
    small_scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)

selectors = st.lists(st.tuples(text, text), min_size=1, max_size=2).map(lambda pairs: Selector(tuple(pairs)))
steps = text | st.integers(0, 99) | selectors
paths = st.lists(steps, max_size=5).map(lambda steps: Path(tuple(steps)))


@st.composite
def trees_with_paths(draw: st.DrawFn) -> tuple[Json, Path]:
    """A small tree and a path at which something is, or could be set."""
    tree = draw(small_json)
    here: Json | Missing = tree
    path = Path()
    for _ in range(draw(st.integers(0, 4))):
        if isinstance(here, list):
            path /= draw(st.integers(0, len(here)))
        elif here is None or isinstance(here, dict | Missing):
            path /= draw(st.sampled_from(("a", "b", "c")))
        else:
            break
        here = get_at(tree, path)
    return tree, path
