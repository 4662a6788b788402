"""The services of a KindContext in tests: calls by HTTP and by clients of an author's own are counted, and can fail."""

from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeAlias, TypeVar

from setpoint.clients.http import HttpClient
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.kind.kind_context import ClientPool, KindServices
from setpoint.testing.faults import CallFaults, FailureOf, FaultyClient, VerbOf, http_failure, http_verb

C = TypeVar("C")
_HTTP_VERBS: Final[Mapping[str, VerbOf]] = {"send": http_verb, "open": http_verb}
# Put around each client: something happens after one of its awaits.
ClientWrapper: TypeAlias = Callable[[Any], Any]


def unwrapped(client: Any) -> Any:
    """The client as it is."""
    return client


@dataclass(frozen=True, slots=True)
class CountedCalls:
    """How calls are counted and failed. `verbs` and `failure` are for clients of an author's own."""

    faults: CallFaults
    verbs: Mapping[str, VerbOf]
    failure: FailureOf
    wrap: ClientWrapper = unwrapped

    def over_http(self, client: HttpClient) -> HttpClient:
        """An HTTP client that fails as servers do, with statuses."""
        found: HttpClient = self.wrap(FaultyClient(client, _HTTP_VERBS, self.faults, failure=http_failure))
        return found

    def over(self, client: C) -> C:
        """Any other client."""
        found: C = self.wrap(FaultyClient(client, self.verbs, self.faults, failure=self.failure))
        return found


class CountedServices(KindServices):
    """The services of a process, `behind`, with every client of theirs counted: they are opened and closed there."""

    __slots__ = ("_behind", "_calls")

    def __init__(self, behind: KindServices, calls: CountedCalls) -> None:
        super().__init__(behind.budgets, _CountedPool(behind.clients, calls), read_secret=behind.read_secret)
        self._behind, self._calls = behind, calls

    def http(self, service: str) -> HttpClient:
        """The HTTP client of a service, by its name."""
        return self._calls.over_http(self._behind.http(service))

    async def close(self) -> None:
        """Closes all of them."""
        await self._behind.close()


class _CountedPool(ClientPool):
    def __init__(self, behind: ClientPool, calls: CountedCalls) -> None:
        super().__init__()
        self._behind, self._calls = behind, calls

    async def get(self, key: Hashable, factory: Callable[[], AbstractAsyncContextManager[C]]) -> C:
        return self._calls.over(await self._behind.get(key, factory))
