from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.deferred_mapping import DeferredMapping, joined, restricted

MAPPINGS = st.dictionaries(st.text(max_size=2), st.integers())


def deferred(values: dict[str, int], made: list[str]) -> DeferredMapping[str, int]:
    def maker(key: str) -> int:
        made.append(key)
        return values[key]

    return DeferredMapping({key: lambda key=key: maker(key) for key in values})  # type: ignore[misc] # of the loop


@given(MAPPINGS, MAPPINGS, st.booleans(), st.booleans())
def test_joined_mappings_are_equal_to_the_dictionaries_joined(
    first: dict[str, int], second: dict[str, int], first_deferred: bool, second_deferred: bool
) -> None:
    made: list[str] = []
    one = deferred(first, made) if first_deferred else first
    other = deferred(second, made) if second_deferred else second

    found = joined(one, other)

    assert (list(found), len(found)) == (list(first | second), len(first | second))
    assert all(key in found for key in first | second)
    assert made == []
    assert dict(found) == first | second


@given(MAPPINGS, st.sets(st.text(max_size=2)))
def test_a_restricted_mapping_has_the_values_of_its_keys_alone(values: dict[str, int], keys: set[str]) -> None:
    made: list[str] = []
    wanted = {key: value for key, value in values.items() if key in keys}

    found = restricted(deferred(values, made), keys)

    assert (list(found), made) == (list(wanted), [])
    assert (dict(found), made) == (wanted, list(wanted))


def test_a_value_is_made_once_and_when_it_is_asked_for() -> None:
    made: list[str] = []
    mapping = deferred({"a": 1, "b": 2}, made)

    assert ("a" in mapping, "c" in mapping, list(mapping), made) == (True, False, ["a", "b"], [])
    assert (mapping["a"], mapping.get("a"), mapping.get("c"), made) == (1, 1, None, ["a"])
