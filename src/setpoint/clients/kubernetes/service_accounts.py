"""Clients that act as ServiceAccounts of a cluster, by impersonation: the API server decides what each may do."""

from typing import Final, NamedTuple

import msgspec

from setpoint.clients.clock import EventLoopClock, MonotonicClock
from setpoint.clients.http import decode_response
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.requests import Endpoint, Representation
from setpoint.errors import ServiceAccountNotFound

# How long an account counts as existing: the API server itself does not ask when one is impersonated.
RECHECK_SECONDS: Final = 30.0
# So many clients are kept; they share connections, and are made anew at no cost.
_MAX_CLIENTS: Final = 2000


_REVIEW: Final = "SelfSubjectReview"
_SELF_REVIEW: Final = Endpoint("authentication.k8s.io", "v1", "selfsubjectreviews")


class _UserInfo(msgspec.Struct):
    username: str = ""


class _ReviewStatus(msgspec.Struct, rename="camel"):
    user_info: _UserInfo


class _Review(msgspec.Struct):
    status: _ReviewStatus


_reviews: Final = msgspec.json.Decoder(_Review)


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
    """Clients of one cluster, each acting as a ServiceAccount. They share the connections of `client`."""

    def __init__(self, client: KubernetesClient, clock: MonotonicClock | None = None) -> None:
        self._client = client
        self._clock = clock or EventLoopClock()
        self._own_username: str | None = None
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
        if account.username == await self._username():
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

    async def _username(self) -> str:
        """The user that `client` itself is."""
        if self._own_username is None:
            answer = await self._client.create(
                _SELF_REVIEW, {"apiVersion": "authentication.k8s.io/v1", "kind": _REVIEW}
            )
            self._own_username = decode_response(_reviews, answer, _REVIEW).status.user_info.username
        return self._own_username
