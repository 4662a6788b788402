"""A case of the acceptance tests of k8sconnect, and the test here that shows it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PeerCase:
    """A case: `test` is `FILE::TEST` below `tests`, and `example` its row where that test runs a table."""

    name: str
    test: str
    example: str = ""
    # Where it differs on purpose: how, and why.
    differs: str = ""
