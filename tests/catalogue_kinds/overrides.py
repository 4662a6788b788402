"""What no rule knows about the fixture of a kind."""

from collections.abc import Mapping
from typing import Any, Final

# Fields of the minimal spec, by kind.
SPECS: Final[Mapping[str, Mapping[str, Any]]] = {
    # Config Connector sends this one when a spec leaves it out; another writer does not.
    "ComputeBackendService": {"connectionDrainingTimeoutSec": 300},
}
# The field that is varied, by kind.
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {}
