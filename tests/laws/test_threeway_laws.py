"""Three-way merge: what holds for every history of generated values and edits."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.merge.threeway import (
    EditableFields,
    EntryList,
    EntryMap,
    WholeValue,
    last_generated_from_data,
    last_generated_to_data,
    merge,
    recover_last_generated,
    remember,
)
from setpoint.core.values.canonical import canonical, same
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path, Selector, get_at
from tests.laws.json_values import json_values

pytestmark = pytest.mark.laws

Spec = dict[str, Any]
History = tuple[Spec, Spec, Spec]

REPLICAS, ENV = Path.parse("size.replicas"), Path.parse("env")
SECRETS, VOLUMES = Path.parse("secrets"), Path.parse("disk.volumes")
TABLE: EditableFields = {REPLICAS: WholeValue(), ENV: EntryMap(), SECRETS: EntryList(), VOLUMES: EntryList("name")}
MANAGED = tuple(Path.parse(text) for text in ("zone", "size.tier", "disk.tags", "disk.mode"))

# Few names and few values, so that three specs often meet.
names = st.sampled_from("abc")
values = st.sampled_from(("", "1", "2"))
volumes = st.fixed_dictionaries({"name": names}, optional={"path": values})


def specs(*, distinct: bool) -> st.SearchStrategy[Spec]:
    """Specs that fit `TABLE`; `distinct` ones have no two list entries of one name."""
    secrets = st.lists(names, max_size=4, unique=distinct)
    keyed = st.lists(volumes, max_size=4, unique_by=(lambda volume: volume["name"]) if distinct else None)
    size = some_of({"replicas": st.sampled_from((0, 1, 2, None)), "tier": values})
    disk = some_of({"volumes": keyed | st.none(), "tags": st.lists(values, max_size=2), "mode": values})
    env = st.dictionaries(names, values, max_size=3) | st.none()
    return some_of({"size": size, "env": env, "secrets": secrets, "disk": disk, "zone": values})


def some_of(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Spec]:
    """Objects with all of the fields, or with any of them."""
    return st.fixed_dictionaries(fields) | st.fixed_dictionaries({}, optional=fields)


any_spec, distinct_spec = specs(distinct=False), specs(distinct=True)
# Last generated, live, generated.
histories = st.tuples(any_spec, any_spec, any_spec)
distinct_histories = st.tuples(distinct_spec, distinct_spec, distinct_spec)


def full(value: Json | Missing) -> Json:
    """`value` without its empty members, None when nothing is left; values of `env` are never empty."""
    if isinstance(value, dict):
        members = {name: full(member) for name, member in value.items() if name != "env"}
        members |= {"env": value["env"] or None} if "env" in value else {}
        return {name: member for name, member in members.items() if member is not None} or None
    if isinstance(value, list):
        return [full(element) for element in value] or None
    return None if isinstance(value, Missing) or value == "" else value


def in_any_order(spec: Json) -> Json:
    """`spec` with the entries of its lists sorted, and each there once: duplicates are ignored."""
    if isinstance(spec, dict):
        return {name: in_any_order(member) for name, member in spec.items()}
    if not isinstance(spec, list):
        return spec
    once = {canonical(entry): entry for entry in spec}
    return [once[key] for key in sorted(once)]


def entries(spec: Spec, path: Path) -> dict[str, Json]:
    """The entries at `path` of a distinct spec, by name."""
    found: Any = get_at(spec, path)
    if path == ENV:
        return dict(found or {})
    return {entry if path == SECRETS else entry["name"]: full(entry) for entry in found or ()}


def entry_places(*sides: Spec) -> Iterator[tuple[Path, list[Json | None]]]:
    """Each entry that any side has: where it is, and what each side has there."""
    for path in (ENV, SECRETS, VOLUMES):
        for name in sorted({name for side in sides for name in entries(side, path)}):
            step = Selector((("name", name),)) if path == VOLUMES else name
            yield path / step, [entries(side, path).get(name) for side in sides]


def pairwise_different(a: Json, b: Json, c: Json) -> bool:
    return not (same(a, b) or same(b, c) or same(a, c))


def with_additions(spec: Spec, more: Spec) -> Spec:
    """`spec` after an edit that changed and added the fields of `more`, and removed only scalars."""
    before: Any = get_at(spec, VOLUMES)
    after: Any = get_at(more, VOLUMES)
    edited = {volume["name"]: volume for volume in after or ()}
    kept = [edited.pop(volume["name"], volume) for volume in before or ()]
    secrets = spec.get("secrets") or []
    return {
        **more,
        "env": {**(spec.get("env") or {}), **(more.get("env") or {})},
        "secrets": [*secrets, *(name for name in more.get("secrets") or () if name not in secrets)],
        "disk": {**more.get("disk", {}), "volumes": [*kept, *edited.values()]},
    }


@given(any_spec, any_spec)
def test_without_an_edit_the_result_is_what_is_generated(last: Spec, generated: Spec) -> None:
    merged = merge(remember(last, TABLE), last, generated, TABLE)

    assert same(in_any_order(full(merged.value)), in_any_order(full(generated)))
    assert (merged.edits, merged.conflicts, merged.reverted) == ((), (), ())


@given(any_spec, any_spec)
def test_every_edit_is_kept_while_the_generated_value_stays(live: Spec, generated: Spec) -> None:
    merged = merge(remember(generated, TABLE), live, generated, TABLE)

    for path in (ENV, SECRETS, VOLUMES):
        assert same(get_at(merged.value, path) or None, get_at(live, path) or None)
    mine, new, result = (full(get_at(side, REPLICAS)) for side in (live, generated, merged.value))
    assert same(result, new if mine is None else mine)
    assert merged.conflicts == ()


@given(histories)
def test_merging_again_leaves_nothing_to_write_and_no_conflict(history: History) -> None:
    last, live, generated = history
    once = merge(remember(last, TABLE), live, generated, TABLE).value

    again = merge(remember(generated, TABLE), once, generated, TABLE)

    assert again.value is once
    assert (again.conflicts, again.reverted) == ((), ())


@given(any_spec, any_spec)
def test_a_repeated_two_way_merge_writes_nothing(live: Spec, generated: Spec) -> None:
    once = merge(None, live, generated, TABLE).value

    assert merge(None, once, generated, TABLE).value is once
    assert merge(remember(generated, TABLE), once, generated, TABLE).value is once


@given(histories)
def test_the_result_is_the_live_object_itself_unless_there_is_something_to_write(history: History) -> None:
    last, live, generated = history

    value = merge(remember(last, TABLE), live, generated, TABLE).value

    assert (value is live) is same(full(value), full(live))


@given(histories)
def test_no_input_is_ever_mutated(history: History) -> None:
    last, live, generated = history
    memory = remember(last, TABLE)
    before = copy.deepcopy((memory, last, live, generated))

    merge(memory, live, generated, TABLE)
    merge(None, live, generated, TABLE)

    assert repr((memory, last, live, generated)) == repr(before)


@given(st.none() | any_spec, any_spec, any_spec)
def test_managed_fields_are_always_as_generated(last: Spec | None, live: Spec, generated: Spec) -> None:
    value = merge(None if last is None else remember(last, TABLE), live, generated, TABLE).value

    for path in MANAGED:
        assert same(full(get_at(value, path)), full(get_at(generated, path)))


@given(histories)
def test_a_revert_is_reported_exactly_where_an_edit_is_lost(history: History) -> None:
    last, live, generated = history
    reverted = merge(remember(last, TABLE), live, generated, TABLE).reverted

    sides = {path: [full(get_at(side, path)) for side in (last, live, generated)] for path in MANAGED}
    lost = {path for path, (was, is_, new) in sides.items() if not (same(is_, was) or same(is_, new))}
    assert sorted(map(str, reverted)) == sorted(map(str, lost))


@given(any_spec)
def test_last_generated_survives_its_json_form(generated: Spec) -> None:
    memory = remember(generated, TABLE)

    assert last_generated_from_data(json.loads(json.dumps(last_generated_to_data(memory)))) == memory


@given(any_spec, any_spec)
def test_last_generated_differs_for_different_objects(a: Spec, b: Spec) -> None:
    if remember(a, TABLE) == remember(b, TABLE):
        assert same(in_any_order(full(a)), in_any_order(full(b)))
    else:
        assert not same(full(a), full(b))


@given(json_values)
def test_other_data_is_no_last_generated_and_no_crash(data: Json) -> None:
    memory = last_generated_from_data({"version": "v1", "digests": data})

    assert last_generated_from_data(data) is None
    assert memory is None or same(memory.digests, data)


@given(distinct_spec, distinct_spec)
def test_two_way_and_three_way_merges_agree_while_nothing_was_removed(generated: Spec, more: Spec) -> None:
    live = with_additions(generated, more)

    two = merge(None, live, generated, TABLE)
    three = merge(remember(generated, TABLE), live, generated, TABLE)

    assert same(two.value, three.value)
    assert (two.edits, two.conflicts) == (three.edits, three.conflicts)


@given(distinct_histories)
def test_a_conflict_is_reported_exactly_where_all_three_differ(history: History) -> None:
    last, live, generated = history
    conflicts = merge(remember(last, TABLE), live, generated, TABLE).conflicts

    differing = {path for path, sides in entry_places(last, live, generated) if pairwise_different(*sides)}
    was, is_, new = (full(get_at(side, REPLICAS)) for side in (last, live, generated))
    # An emptied scalar is no edit, so there is no conflict.
    scalar = {REPLICAS} if is_ is not None and pairwise_different(was, is_, new) else set()
    assert sorted(map(str, conflicts)) == sorted(map(str, differing | scalar))


@given(distinct_histories)
def test_an_entry_takes_the_side_that_changed_or_the_edit(history: History) -> None:
    last, live, generated = history
    value: Any = merge(remember(last, TABLE), live, generated, TABLE).value

    for _, (was, is_, new, result) in entry_places(last, live, generated, value):
        assert same(result, new if same(is_, was) else is_)


# --- Recovery after a crash: only the live object shows whether the write happened ------------------------------------


@given(histories)
def test_a_write_that_did_not_happen_is_made_by_the_next_merge(history: History) -> None:
    last, live, generated = history
    memory = recover_last_generated(remember(last, TABLE), remember(generated, TABLE), live, TABLE)

    again = merge(memory, live, generated, TABLE)

    assert same(again.value, merge(remember(last, TABLE), live, generated, TABLE).value)


@given(distinct_histories)
def test_a_write_that_did_happen_leaves_nothing_to_write(history: History) -> None:
    last, live, generated = history
    written = merge(remember(last, TABLE), live, generated, TABLE).value
    memory = recover_last_generated(remember(last, TABLE), remember(generated, TABLE), written, TABLE)

    assert merge(memory, written, generated, TABLE).value is written


@given(distinct_histories, distinct_spec)
def test_a_value_that_only_the_owner_wrote_is_never_reported_as_an_edit(history: History, later: Spec) -> None:
    last, live, generated = history
    first = merge(remember(last, TABLE), live, generated, TABLE)

    memory = recover_last_generated(remember(last, TABLE), remember(generated, TABLE), first.value, TABLE)
    then = merge(memory, first.value, later, TABLE)

    assert set(then.edits) <= set(first.edits)
    assert then.reverted == ()


@given(any_spec, any_spec)
def test_without_a_write_in_flight_recovery_changes_nothing(last: Spec, live: Spec) -> None:
    memory = remember(last, TABLE)

    assert recover_last_generated(memory, memory, live, TABLE) == memory


@given(histories)
def test_recovery_is_idempotent(history: History) -> None:
    last, live, generated = history
    begun = remember(generated, TABLE)
    once = recover_last_generated(remember(last, TABLE), begun, live, TABLE)

    assert recover_last_generated(once, begun, live, TABLE) == once


@given(any_spec, any_spec)
def test_without_last_generated_recovery_needs_the_whole_write(live: Spec, generated: Spec) -> None:
    begun = remember(generated, TABLE)

    assert recover_last_generated(None, begun, generated, TABLE) == begun
    assert recover_last_generated(None, begun, live, TABLE) in (None, begun)
