"""Laws of the services of the catalogue: pages, masks, and what validation keeps."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.localcloud.api_errors import CloudApiError
from setpoint.localcloud.google.filled_members import FILLED_MEMBERS
from setpoint.localcloud.google.members import ApiMember, MemberType
from setpoint.localcloud.google.validation import mask_paths, masked, returned, validated, with_defaults
from tests.localcloud.catalogue_bodies import all_collections, minimal
from tests.localcloud.requests import get, held_cloud, ok

_NAMES = st.sampled_from(["a", "b", "c", "labels"])
_SCALARS = st.one_of(st.integers(-9, 9), st.text("xyz", max_size=3), st.booleans())
_TREES = st.dictionaries(_NAMES, st.one_of(_SCALARS, st.dictionaries(_NAMES, _SCALARS, max_size=3)), max_size=4)
_FREE = ApiMember(
    MemberType.OBJECT,
    members={
        "a": ApiMember(MemberType.ANY),
        "b": ApiMember(MemberType.ANY),
        "c": ApiMember(MemberType.ANY),
        "labels": ApiMember(MemberType.MAP, element=ApiMember(MemberType.ANY)),
    },
)


@pytest.mark.parametrize("name", sorted(FILLED_MEMBERS))
def test_a_service_takes_back_what_it_fills_in(name: str) -> None:
    found = [one for one in all_collections() if f"{one.api}/{one.plural}" == name]

    for collection in found:
        validated(collection.shape, FILLED_MEMBERS[name])
    assert found


@given(live=_TREES, sent=_TREES, names=st.sets(_NAMES))
def test_a_mask_changes_what_it_names_and_nothing_else(
    live: dict[str, Any], sent: dict[str, Any], names: set[str]
) -> None:
    after = masked(live, sent, mask_paths(_FREE, ",".join(names)))

    assert {name: after.get(name) for name in names} == {name: sent.get(name) for name in names}
    assert {name: one for name, one in after.items() if name not in names} == {
        name: one for name, one in live.items() if name not in names
    }


@given(names=st.sets(st.text("abc", min_size=3, max_size=4), max_size=12), size=st.integers(1, 5))
def test_the_pages_of_a_list_are_the_list(names: set[str], size: int) -> None:
    cloud = held_cloud()
    topics = "/pubsub.googleapis.com/v1/projects/acme/topics"
    for name in names:
        ok(cloud.call("PUT", f"{topics}/{name}", {}))

    found, token = list[str](), ""
    while True:
        page = get(cloud, f"{topics}?pageSize={size}&pageToken={token}")
        found += [one["name"].rpartition("/")[2] for one in page.get("topics", [])]
        token = page.get("nextPageToken", "")
        if not token:
            break

    assert found == sorted(names)


def test_what_is_valid_stays_as_it_is() -> None:
    for collection in all_collections():
        body = with_defaults(collection.shape, minimal(collection.shape))

        assert validated(collection.shape, body) == body, collection.kinds
        assert returned(collection.shape, returned(collection.shape, body)) == returned(collection.shape, body)


@given(value=st.recursive(_SCALARS | st.none(), lambda inner: st.lists(inner, max_size=2), max_leaves=4))
def test_any_value_is_taken_or_refused_by_name(value: Any) -> None:
    shape = ApiMember(
        MemberType.OBJECT,
        members={
            type_.name: ApiMember(type_, values=("X", "Y")) for type_ in MemberType if type_ is not MemberType.ANY
        },
    )
    for name in shape.members:
        refusal = _refusal(shape, {name: value})

        assert refusal is None or (refusal.status == 400 and f"'{name}" in refusal.message)


def _refusal(shape: ApiMember, body: dict[str, Any]) -> CloudApiError | None:
    try:
        validated(shape, body)
    except CloudApiError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("type_", "sent", "kept"),
    [
        (MemberType.INT64, 5, "5"),
        (MemberType.INT64, "005", "5"),
        (MemberType.INTEGER, "7", 7),
        (MemberType.INTEGER, 7.0, 7),
        (MemberType.DURATION, "1.5s", "1.5s"),
        (MemberType.BYTES, "YQ", "YQ"),
    ],
)
def test_numbers_are_kept_in_the_form_of_the_api(type_: MemberType, sent: object, kept: object) -> None:
    shape = ApiMember(MemberType.OBJECT, members={"x": ApiMember(type_)})

    assert validated(shape, {"x": sent}) == {"x": kept}
