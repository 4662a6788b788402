"""What of the lifecycle contract is not tried on a kind of the catalogue, and why."""

from collections.abc import Iterator, Mapping
from typing import Final

from setpoint.catalogue.rows import FieldFacts
from setpoint.testing.claims import deleting
from setpoint.testing.contract import CLAIMS
from tests.catalogue_kinds.row_fixture import RowFixture
from tests.catalogue_kinds.varied_fields import EXTERNAL, NO_FIELD


def claims_left_out(fixture: type[RowFixture]) -> Mapping[str, str]:
    """The claims that make no sense for a kind, by their names, each with the reason."""
    return {name: why for names, why in _claims(fixture) for name in names}


def _claims(fixture: type[RowFixture]) -> Iterator[tuple[tuple[str, ...], str]]:
    row = fixture.row
    if not fixture.is_deletable():
        yield _deletions(), "the service cannot delete it"
    if "delete" not in row.operations:
        yield _SLOW_DELETIONS, "the service answers a deletion when it is done"
    if row.absent:
        yield _KEPT_IDS, "one that was deleted is kept for a time, and undeleted: see tests/kinds/test_custom_roles.py"
    if "dns" in row.operations.values():
        yield _FAILED_OPERATIONS, "operations of Cloud DNS do not tell of errors"
    yield from _claims_of_fields(fixture)
    if row.kind in _OF_KINDS:
        yield _OF_KINDS[row.kind]


def _claims_of_fields(fixture: type[RowFixture]) -> Iterator[tuple[tuple[str, ...], str]]:
    fields = fixture.row.fields.values()
    if any(_is_never_shown(one) for one in fields):
        yield _ADOPTIONS, "a required field is never shown: whether it is as declared is not known before it is sent"
    if any(one.secret and one.immutable for one in fields):
        yield _ROTATIONS, "its secret is fixed when it is created: another one is refused"
    if fixture.field is NO_FIELD:
        yield (*_UNMANAGED_FIELDS, "a path that is no field is refused"), "it has no field that could be unmanaged"
    if fixture.field.path.endswith(f".{EXTERNAL}"):
        yield _UNMANAGED_FIELDS, "the only field to vary is a reference, which is managed as one unit"


def _deletions() -> tuple[str, ...]:
    """The claims that delete the object; those of faults go through its whole life."""
    words = ("delet", "the next call has the fault")
    return tuple(one.name for one in CLAIMS if one in deleting.CLAIMS or any(word in one.name for word in words))


def _is_never_shown(facts: FieldFacts) -> bool:
    hidden = facts.input_only or facts.secret
    return facts.required and (hidden or any(_is_never_shown(one) for one in facts.fields.values()))


_SLOW_DELETIONS: Final = (
    "a slow deletion is waited for",
    "a deletion that ends in an error is reported and sent again",
)
_KEPT_IDS: Final = (
    "deletes the object and is gone",
    "applied again after its deletion it is created again",
)
_FAILED_OPERATIONS: Final = (
    "an operation that ends in an error fails the step and is sent again",
    "a revert that ends in an error is not counted",
)
_ADOPTIONS: Final = (
    "adopts what equals without a write",
    "observe reports what differs and never writes",
    "observe reports that it is as declared",
    "a create whose answer was lost is not sent twice",
    "the plan of a creation whose answer was lost",
)
# What is odd about a single kind.
_OF_KINDS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "Project": (
        ("applied again after its deletion it is created again",),
        "the id of a deleted project is never free again",
    ),
    "SecretManagerSecretVersion": (
        ("deletes the object and is gone",),
        "the answer to its deletion says that it is gone: it is not read once more",
    ),
    "ServiceIdentity": (
        (
            "an outage is not absence and no failure",
            "a condition that does not flip keeps its time",
            "the plan of a creation whose answer was lost",
        ),
        "nothing of an identity is asked for: neither an outage nor a lost answer is noticed",
    ),
}
_ROTATIONS: Final = (
    "a rotated secret leaves the fast path and reaches the service",
    "an object that is adopted is given the secret once",
    "a secret shows nowhere",
    "an oscillation shows no secret",
    "a rotated secret is no revert",
    "after any await, handing over a secret, the author rotates the secret: it ends as declared",
)
_UNMANAGED_FIELDS: Final = ("unmanaged keeps the live value over the spec", "an unmanaged field ends it")
