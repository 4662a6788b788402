"""Foreign servers and user mappings pass the lifecycle contract of setpoint on a real server."""

from collections.abc import Sequence

from foreign_fixtures import ForeignServerFixture, UserMappingFixture
from postgres_contract import PostgresContract
from setpoint.testing import LackingPart, LifecycleClaim

_HOUR = "another writer every ten seconds for an hour costs eight writes"
# No name of an option is known to be wrong.
_UNKNOWN_FIELD = "a path that is no field is refused"


class TestForeignServer(PostgresContract):
    fixture = ForeignServerFixture

    @classmethod
    def cases(cls) -> Sequence[LifecycleClaim | LackingPart]:
        """All but one, which is about the engine alone."""
        return [one for one in super().cases() if getattr(one, "name", "") != _HOUR]


class TestUserMapping(PostgresContract):
    fixture = UserMappingFixture

    @classmethod
    def cases(cls) -> Sequence[LifecycleClaim | LackingPart]:
        """Of the long ones those about a kill: the others are about what foreign servers do the same way."""
        return [one for one in super().cases() if not isinstance(one, LifecycleClaim) or _is_tried(one)]


def _is_tried(claim: LifecycleClaim) -> bool:
    is_short = not claim.is_long and claim.name not in (_HOUR, _UNKNOWN_FIELD)
    return is_short or claim.name.startswith("killed after any await")
