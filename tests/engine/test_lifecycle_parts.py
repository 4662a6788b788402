"""What of the lifecycle contract makes no sense for which kind, and why: nothing is left out in silence."""

from setpoint.testing.contract import CLAIMS
from setpoint.testing.kind_fixture import KindFixture
from setpoint.testing.kind_parts import Part
from tests.engine.gadget_fixture import GadgetFixture, StatelessGadgetFixture
from tests.engine.settings import SETTINGS
from tests.kinds.lifecycle_bucket import BucketFixture
from tests.kinds.lifecycle_database import DatabaseFixture
from tests.kinds.lifecycle_instance import InstanceFixture
from tests.kinds.lifecycle_policies import PartialPolicyFixture, WholePolicyFixture
from tests.kinds.lifecycle_user import UserFixture

TOLD = {
    Part.BULK_OBSERVE: "it observes one object at a time",
    Part.CONTEXT: "it is made with a client of Google",
    Part.FORMER: "it has no former implementation",
}
LACKING: dict[type[KindFixture], dict[Part, str]] = {
    GadgetFixture: {
        **TOLD,
        Part.LIST: "gadgets cannot be listed",
        Part.CONTEXT: "it is made with its service",
        Part.STATELESS: "it keeps a cookie",
    },
    StatelessGadgetFixture: {
        **TOLD,
        Part.LIST: "gadgets cannot be listed",
        Part.CONTEXT: "it is made with its service",
        Part.COOKIE: "it is stateless: it compares every time",
    },
    BucketFixture: {
        **TOLD,
        Part.OPERATIONS: "Cloud Storage answers when it is done: there are no operations",
        Part.OWN_ABANDON: "the spec of a bucket does not speak of deletion",
        Part.SECRET: "nothing in a bucket is secret",
        Part.SLOW_CREATE: "Cloud Storage answers when it is done: there are no operations",
        Part.STATELESS: "it keeps a cookie",
    },
    DatabaseFixture: {
        **TOLD,
        Part.LIST: "its objects are observed one by one",
        Part.COOKIE: "it is stateless: it compares every time",
        Part.IMMUTABLE: "what is fixed about a database is where it is: a change of that is a move",
        Part.LABELS: "Cloud SQL has no labels on databases",
        Part.MOVING_OUTPUT: "its only output is its link, and that is its name",
        Part.PRUNING: "charset and collation, all that it has, keep their live value when the spec is silent",
        Part.SECRET: "nothing in a database's settings is secret",
        Part.SLOW_CREATE: "Cloud SQL answers the creation of a database with an operation that is done",
    },
    InstanceFixture: {
        **TOLD,
        Part.OWN_ABANDON: "the spec of an instance does not speak of deletion",
        Part.STATELESS: "it keeps a cookie",
    },
    UserFixture: {
        **TOLD,
        Part.LIST: "its objects are observed one by one",
        Part.COOKIE: "it is stateless: it compares every time",
        Part.LABELS: "Cloud SQL has no labels on users",
        Part.OPERATIONS: "Cloud SQL answers every write to a user with an operation that is done",
        Part.OUTPUTS: "the status shows what another writer gave a user, and nothing of a new one",
        Part.OWN_ABANDON: "the spec of a user does not speak of deletion",
        Part.PROTECTION: "nothing about a user keeps data from being lost",
        Part.SLOW_CREATE: "Cloud SQL answers every write to a user with an operation that is done",
    },
}
_OF_A_POLICY: dict[Part, str] = {
    **TOLD,
    Part.COOKIE: "it is stateless: it compares every time",
    Part.IMMUTABLE: "what is fixed is whose policy it is: a change of that is a move",
    Part.LABELS: "a policy has no labels",
    Part.LIST: "its objects are observed one by one",
    Part.OPERATIONS: "the service answers when it is done: there are no operations",
    Part.OWN_ABANDON: "the spec does not speak of deletion",
    Part.PROTECTION: "nothing in a policy keeps data from being lost",
    Part.PRUNING: "what a binding leaves out is not there",
    Part.SECRET: "nothing in a policy is secret",
    Part.SLOW_CREATE: "the service answers when it is done: there are no operations",
    Part.UNSPECIFIED: "what a binding leaves out is not there",
}
LACKING |= {
    PartialPolicyFixture: _OF_A_POLICY,
    WholePolicyFixture: {**_OF_A_POLICY, Part.MOVING_OUTPUT: "the spec has all of the policy"},
}
# The claims that are left out where a kind lacks a part.
CLAIMS_ABOUT = {
    Part.BULK_OBSERVE: [
        "what is observed together is what is observed alone",
        "an object that is gone is not observed together",
        "an outage of an observation of many is not absence",
    ],
    Part.CONTEXT: [
        "a process that may not write plans the same",
    ],
    Part.COOKIE: [
        "toggling the annotation leaves the fast path",
        "distinguishes intent changes from drift",
        "the cookie is in the status",
        "the cookie is in the annotation when that is its place",
        "the cookie is read wherever it was written",
        "the cookie is moved by the first step after a switch",
        "the cookie of another tool is left alone",
        "a foreign cookie means a full comparison and no write",
        "a raised revision of the kind means one full comparison and no write",
        "a kind that gives up its cookie compares from then on",
        "drift without effect means one full comparison",
        "no cookie is kept after a failure",
        "no cookie hides withheld fields",
    ],
    Part.FORMER: [
        "whatever it was done like before writes only what is declared",
    ],
    Part.IMMUTABLE: [
        "refuses an immutable change and names the field",
    ],
    Part.LABELS: [
        "labels are part of the intent",
    ],
    Part.LIST: [
        "a listed object is what is observed",
        "an object that is gone is not listed",
        "an outage of a list raises",
    ],
    Part.MOVING_OUTPUT: [
        "an output that changes is reported and is no drift",
    ],
    Part.OPERATIONS: [
        "an operation is on record and finished by a later step",
        "an operation that ends in an error fails the step and is sent again",
        "an outage while an operation runs forgets nothing",
        "a write that takes its time leaves the same record",
        "a slow deletion is waited for",
        "a deletion that ends in an error is reported and sent again",
        "a deletion in the middle of an update waits for it",
        "a revert that ends in an error is not counted",
        "killed after any await, updating slowly, it ends with one object or none",
        "killed after any await, deleting slowly, it ends with one object or none",
        "killed after any await, reverting drift slowly, it ends with one object or none",
    ],
    Part.OUTPUTS: [
        "outputs are in the status",
    ],
    Part.OWN_ABANDON: [
        "abandons by its own spec",
    ],
    Part.PROTECTION: [
        "protection is kept when the spec falls silent",
        "protection is given up by an explicit value",
    ],
    Part.PRUNING: [
        "an edit that says the same writes nothing",
        "what is unspecified outlives a change under ignore unspecified fields",
        "prunes what is unspecified without it",
        "default to gcp fields keeps the listed field only",
        "toggling the annotation leaves the fast path",
        "a residual in server defaults is accepted and rests",
        "server defaults are sent again when a reconcile is requested",
        "a server default that the author names is sent",
        "other fields are still written",
        "what the author takes back from the service is pruned after an upgrade",
    ],
    Part.SECRET: [
        "a rotated secret leaves the fast path and reaches the service",
        "an object that is adopted is given the secret once",
        "a secret shows nowhere",
        "a missing key of a secret is named",
        "waits until its secret is there",
        "an oscillation shows no secret",
        "a rotated secret is no revert",
        "killed after any await, handing over a secret at once, it ends with one object or none",
        "killed after any await, handing over a secret slowly, it ends with one object or none",
        "after any await, handing over a secret, the author rotates the secret: it ends as declared",
    ],
    Part.SLOW_CREATE: [
        "a slow create is on record and finished by a later step",
        "killed after any await, creating slowly, it ends with one object or none",
        "killed after any await, handing over a secret slowly, it ends with one object or none",
    ],
    Part.STATELESS: [
        "without a cookie it compares every time",
    ],
    Part.UNSPECIFIED: [
        "ignore unspecified fields keeps what is unspecified",
        "drift without effect means one full comparison",
        "what is left to the service stays so after an upgrade",
    ],
}


def test_each_kind_says_what_it_lacks_and_why() -> None:
    assert {setting.fixture: setting.fixture.without for setting in SETTINGS} == LACKING


def test_only_claims_about_what_a_kind_lacks_are_left_out() -> None:
    for fixture, lacking in LACKING.items():
        left_out = {claim.name for claim in CLAIMS if not claim.fits(fixture)}

        assert left_out == {name for part in lacking for name in CLAIMS_ABOUT[part]}
