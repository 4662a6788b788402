"""Clients that act as ServiceAccounts of a cluster, by impersonation: the API server decides what each may do."""

import base64
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from setpoint.clients.clock import EventLoopClock, MonotonicClock
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.requests import Endpoint, Representation
from setpoint.errors import ServiceAccountNotFound

# How long an account counts as existing: the API server itself does not ask when one is impersonated.
RECHECK_SECONDS: Final = 30.0
# So many clients are kept; they share connections, and are made anew at no cost.
_MAX_CLIENTS: Final = 2000
_JWT_PARTS: Final = 3


class _Claims(msgspec.Struct):
    sub: str = ""


_claims: Final = msgspec.json.Decoder(_Claims)


class ServiceAccountName(NamedTuple):
    """A ServiceAccount."""

    namespace: str
    name: str

    @property
    def username(self) -> str:
        """The user that the API server knows it as."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ServiceAccountClients:
    """Clients of one cluster, each acting as a ServiceAccount. They share the connections of `client`.

    Of a process for all namespaces, `client` has more rights than any tenant: then no tenant acts as its account.
    """

    def __init__(
        self, client: KubernetesClient, clock: MonotonicClock | None = None, *, may_be_own: bool = False
    ) -> None:
        self._client = client
        self._may_be_own = may_be_own
        self._clock = clock or EventLoopClock()
        # Each with the time until which its account counts as existing.
        self._clients: dict[ServiceAccountName, tuple[KubernetesClient, float]] = {}

    async def acting_as(self, account: ServiceAccountName) -> KubernetesClient:
        """The client that acts as `account`; ServiceAccountNotFound when there is none."""
        now = self._clock.monotonic()
        client, valid_until = self._clients.get(account, (None, now))
        if client is None or valid_until <= now:
            await self._require_exists(account)
            if len(self._clients) >= _MAX_CLIENTS:
                self._clients.clear()
            client = client or self._client.acting_as(account.username)
            self._clients[account] = client, now + RECHECK_SECONDS
        return client

    async def _require_exists(self, account: ServiceAccountName) -> None:
        """A deleted account has lost its rights, though role bindings may still name it."""
        if not self._may_be_own and account.username == _subject(await self._client.headers()):
            raise ServiceAccountNotFound(
                f"ServiceAccount {account} is that of setpoint itself, which acts for no tenant: keep the resource in "
                "another namespace"
            )
        endpoint = Endpoint("", "v1", "serviceaccounts", account.namespace, account.name)
        found = await self._client.get(endpoint, Representation.METADATA)
        if found is None:
            self._clients.pop(account, None)
            raise ServiceAccountNotFound(
                f"ServiceAccount {account} does not exist: setpoint acts as it for the resources of this namespace. An "
                f"administrator makes it, and gives it its rights, with `setpoint tenant {account.namespace}`"
            )


def _subject(headers: Mapping[str, str]) -> str:
    """The user that a bearer token is for; empty for any other authentication, which is that of no ServiceAccount."""
    parts = headers.get("Authorization", "").removeprefix("Bearer ").split(".")
    if len(parts) != _JWT_PARTS:
        return ""
    try:
        return _claims.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))).sub
    except (ValueError, msgspec.MsgspecError):
        return ""
