"""What of the lifecycle contract is not tried on a kind of the catalogue, and why."""

from collections.abc import Iterator, Mapping
from typing import Final

from setpoint.catalogue.rows import FieldFacts, KindFacts
from setpoint.testing.claims import deleting
from setpoint.testing.contract import CLAIMS
from tests.catalogue_kinds.row_fixture import RowFixture
from tests.catalogue_kinds.varied_fields import EXTERNAL

_ODD: Final = "its id is not in its spec: such kinds are not tried by a rule yet"
_OWN_METHODS: Final = "requests of methods for single fields are not told apart here: see lifecycle_compute.py"
_ZONES: Final = "it is in a zone or a region, by two fields, of which a rule fills in one"
_SERVICES: Final = "it stands for a service of a project, and is no object of a collection"
# Kinds that a rule does not know.
KINDS: Final[Mapping[str, str]] = {
    "BigQueryAnalyticsHubListing": "it has one of several sources, which a rule does not choose",
    "ComputeAutoscaler": "its update names the object in the query, which is not sent yet",
    "ComputeInstance": _OWN_METHODS,
    "ComputeTargetHTTPProxy": _OWN_METHODS,
    "ComputeTargetSSLProxy": _OWN_METHODS,
    "ComputeTargetTCPProxy": _OWN_METHODS,
    "ComputeReservation": "its count is set by a method whose effect the local cloud does not show yet",
    "Project": "its name is another member than its id, which the fixture takes it for",
    "PubSubLiteSubscription": _ZONES,
    "PubSubLiteTopic": _ZONES,
    "SpannerDatabase": "statements change it, and not its update: see test_spanner_databases.py",
    "Service": _SERVICES,
    "ServiceIdentity": _SERVICES,
    "ServiceNetworkingConnection": _SERVICES,
}


def why_left_out(row: KindFacts) -> str | None:
    """Why the kind is not tried at all; None for one that is."""
    if row.kind in KINDS:
        return KINDS[row.kind]
    if row.inside is not None:
        return "it is an element of a list in the object of its parent"
    return _ODD if row.id.where in ("service", "fields") else None


def claims_left_out(fixture: type[RowFixture]) -> Mapping[str, str]:
    """The claims that make no sense for a kind, by their names, each with the reason."""
    return {name: why for names, why in _claims(fixture) for name in names}


def _claims(fixture: type[RowFixture]) -> Iterator[tuple[tuple[str, ...], str]]:
    row = fixture.row
    if "delete" not in row.methods:
        yield _deletions(), "the service cannot delete it"
    if "delete" not in row.operations:
        yield _SLOW_DELETIONS, "the service answers a deletion when it is done"
    if row.absent:
        yield _AT_ONCE, "the service keeps a deleted one for a time, with its name, and its answer says so"
    if "dns" in row.operations.values():
        yield _FAILED_OPERATIONS, "operations of Cloud DNS do not tell of errors"
    if any(_is_never_shown(one) for one in row.fields.values()):
        yield _ADOPTIONS, "a required field is never shown: whether it is as declared is not known before it is sent"
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
_AT_ONCE: Final = (
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
_UNMANAGED_FIELDS: Final = ("unmanaged keeps the live value over the spec", "an unmanaged field ends it")
