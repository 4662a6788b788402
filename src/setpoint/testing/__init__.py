"""Tests for kinds and owners: the contracts that each passes, as classes of pytest, and an engine in memory.

Nothing of the product imports it. It needs pytest: `pip install 'setpoint[testing]'`.
"""

try:
    import pytest
except ImportError as error:
    raise ImportError("setpoint.testing needs pytest: pip install 'setpoint[testing]'") from error

# Before they are imported: a claim that fails shows both sides of its comparison.
pytest.register_assert_rewrite(
    "setpoint.testing.claims",
    "setpoint.testing.contract",
    "setpoint.testing.harness",
    "setpoint.testing.interruptions",
    "setpoint.testing.other_writer",
    "setpoint.testing.owners",
    "setpoint.testing.upgrades",
)

from setpoint.testing.claims.claim import LifecycleClaim  # noqa: E402 - see above
from setpoint.testing.clock import VirtualClock  # noqa: E402 - see above
from setpoint.testing.contract import KindContract, LackingPart  # noqa: E402 - see above
from setpoint.testing.faults import (  # noqa: E402 - see above
    CallFault,
    CallFaults,
    FaultyClient,
    VerbOf,
    http_failure,
    http_verb,
    setpoint_failure,
)
from setpoint.testing.harness import (  # noqa: E402 - see above
    ContractHarness,
    EngineHarness,
    contract_harness,
    engine_harness,
)
from setpoint.testing.interruptions import Interruption, Killed, after_any_await, die, interrupted  # noqa: E402
from setpoint.testing.kind_fixture import KindFixture  # noqa: E402 - see above
from setpoint.testing.kind_parts import (  # noqa: E402 - see above
    ImmutableChange,
    MovedObject,
    Part,
    ProtectedField,
    ReferringSpec,
    Spec,
    SpecifiedField,
    UnspecifiedField,
)
from setpoint.testing.owners.owner_contract import OwnerClaim, OwnerContract  # noqa: E402 - see above
from setpoint.testing.owners.owner_fixture import ChildField, OwnerFixture, OwnerPart  # noqa: E402 - see above
from setpoint.testing.owners.owner_harness import OwnerHarness, owner_harness  # noqa: E402 - see above

__all__ = (
    "CallFault",
    "CallFaults",
    "ChildField",
    "ContractHarness",
    "EngineHarness",
    "FaultyClient",
    "ImmutableChange",
    "Interruption",
    "Killed",
    "KindContract",
    "KindFixture",
    "LackingPart",
    "LifecycleClaim",
    "MovedObject",
    "OwnerClaim",
    "OwnerContract",
    "OwnerFixture",
    "OwnerHarness",
    "OwnerPart",
    "Part",
    "ProtectedField",
    "ReferringSpec",
    "Spec",
    "SpecifiedField",
    "UnspecifiedField",
    "VerbOf",
    "VirtualClock",
    "after_any_await",
    "contract_harness",
    "die",
    "engine_harness",
    "http_failure",
    "http_verb",
    "interrupted",
    "owner_harness",
    "setpoint_failure",
)
