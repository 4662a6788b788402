"""Users of a cluster: who a bearer token is (TokenReview), and what that user may list (SubjectAccessReview).

Answers are kept for a short time, so that a page does not ask the API server for every row. Actions are sent with the
token of the user: the API server decides, and its audit log names the user.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from typing import Any, Final, Literal

import msgspec

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.discovery import ApiResource, Discovery
from setpoint.clients.kubernetes.requests import Endpoint, PatchType
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.dashboard.access.sessions import SignInRefused, digest_of
from setpoint.dashboard.access.viewer import Scope
from setpoint.dashboard.actions import annotations_for
from setpoint.dashboard.api.models import ActionName
from setpoint.engine.ports import Clock
from setpoint.engine.resource import ResourceRef
from setpoint.errors import ManifestInvalid

# How long an answer of the API server is used.
RIGHTS_SECONDS: Final = 30.0
_KINDS_SECONDS: Final = 300.0
_MAX_TOKEN: Final = 16_384
_MAX_KNOWN: Final = 1_000
_MAX_DECISIONS: Final = 50_000
_AT_ONCE: Final = 10
_TOKEN_REVIEWS: Final = Endpoint("authentication.k8s.io", "v1", "tokenreviews")
_ACCESS_REVIEWS: Final = Endpoint("authorization.k8s.io", "v1", "subjectaccessreviews")


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] = msgspec.field(default_factory=list)
    extra: dict[str, list[str]] = msgspec.field(default_factory=dict)


class _ReviewStatus(msgspec.Struct):
    authenticated: bool = False
    allowed: bool = False
    user: _User = msgspec.field(default_factory=_User)


class _Review(msgspec.Struct):
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


_decode_review: Final = msgspec.json.Decoder(_Review).decode


@dataclass(slots=True)
class ClusterSignIn:
    """Signs users of a cluster in. `client` has the rights to ask; `as_user` makes a client with a user's own token."""

    client: KubernetesClient
    clock: Clock
    as_user: Callable[[str], KubernetesClient]
    # The namespace of the leases of the processes: who may list leases there may see the processes.
    leases: str
    way: Literal["url", "bearer"] = "bearer"
    # By the digest of the token.
    _known: "dict[str, ClusterViewer]" = field(default_factory=dict)
    _kinds: "ServedKinds" = field(init=False)

    def __post_init__(self) -> None:
        self._kinds = ServedKinds(Discovery(self.client), self.clock)

    async def viewer_for(self, token: str) -> "ClusterViewer":
        """See SignIn."""
        if not token or len(token) > _MAX_TOKEN or not token.isascii() or not token.isprintable():
            raise _refused()
        key = digest_of(token)
        viewer = self._known.get(key)
        if viewer is None or not await viewer.is_current():
            viewer = ClusterViewer(self, token, await self.review(token))
            if len(self._known) >= _MAX_KNOWN:
                self._known.pop(next(iter(self._known)))
            self._known[key] = viewer
        return viewer

    async def review(self, token: str) -> _User:
        """The user of a token; SignInRefused for one that the cluster does not know."""
        body: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = _decode_review(await self.client.create(_TOKEN_REVIEWS, body)).status
        if not status.authenticated or not status.user.username:
            raise _refused()
        return status.user

    async def may_list(self, user: _User, kind: GroupKind, namespace: str) -> bool:
        """Whether a user may list a kind in a namespace; in all of them for an empty one."""
        served = await self._kinds.of(kind)
        return served is not None and await self._may_list(user, served.group, served.plural, namespace)

    async def may_list_leases(self, user: _User) -> bool:
        """Whether a user may list the leases of the processes."""
        return await self._may_list(user, "coordination.k8s.io", "leases", self.leases)

    async def _may_list(self, user: _User, group: str, plural: str, namespace: str) -> bool:
        attributes = {"verb": "list", "group": group, "resource": plural, "namespace": namespace}
        spec: dict[str, Any] = {"resourceAttributes": attributes, "user": user.username, "uid": user.uid}
        spec |= {"groups": user.groups, "extra": user.extra}
        body: JsonObject = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        return _decode_review(await self.client.create(_ACCESS_REVIEWS, body)).status.allowed

    async def served(self, kind: GroupKind) -> ApiResource | None:
        """The kind as the cluster serves it; None when it does not."""
        return await self._kinds.of(kind)


class ClusterViewer:
    """A user of the cluster, by a token that was reviewed."""

    is_unrestricted = False

    def __init__(self, sign_in: ClusterSignIn, token: str, user: _User) -> None:
        self._sign_in = sign_in
        self._token = token
        self._user = user
        self._reviewed_at = sign_in.clock.monotonic()
        self._is_refused = False
        self._decided: dict[Scope, tuple[bool, float]] = {}
        self._sees_processes = False, float("-inf")
        self._slots = asyncio.Semaphore(_AT_ONCE)

    def __repr__(self) -> str:
        return f"<{self._user.username}>"

    @property
    def user(self) -> str | None:
        """See Viewer."""
        return self._user.username

    @property
    def token(self) -> str | None:
        """See Viewer."""
        return self._token

    async def sees_processes(self) -> bool:
        """See Viewer: the right to list the leases of the processes."""
        is_allowed, until = self._sees_processes
        if (now := self._sign_in.clock.monotonic()) >= until:
            is_allowed = await self._sign_in.may_list_leases(self._user)
            self._sees_processes = is_allowed, now + RIGHTS_SECONDS
        return is_allowed

    async def is_current(self) -> bool:
        """See Viewer."""
        now = self._sign_in.clock.monotonic()
        if not self._is_refused and now - self._reviewed_at >= RIGHTS_SECONDS:
            try:
                self._user = await self._sign_in.review(self._token)
                self._reviewed_at = now
            except SignInRefused:
                self._is_refused = True
        return not self._is_refused

    async def decide(self, scopes: Collection[Scope]) -> Mapping[Scope, bool]:
        """See Viewer: the right to list the kind in its namespace, or in all namespaces."""
        kinds = {scope.kind for scope in scopes}
        everywhere = await self._decide_all({Scope(kind, "") for kind in kinds})
        rest = {one for one in scopes if one.namespace and not everywhere[Scope(one.kind, "")]}
        found = await self._decide_all(rest)
        return {one: found.get(one, everywhere[Scope(one.kind, "")]) for one in scopes}

    async def _decide_all(self, scopes: Collection[Scope]) -> Mapping[Scope, bool]:
        return dict(zip(scopes, await asyncio.gather(*map(self._decide, scopes)), strict=True))

    async def _decide(self, scope: Scope) -> bool:
        now = self._sign_in.clock.monotonic()
        known = self._decided.get(scope)
        if known is not None and now < known[1]:
            return known[0]
        async with self._slots:
            is_allowed = await self._sign_in.may_list(self._user, scope.kind, scope.namespace)
        if len(self._decided) >= _MAX_DECISIONS:
            self._decided.clear()
        self._decided[scope] = is_allowed, now + RIGHTS_SECONDS
        return is_allowed

    async def act(self, ref: ResourceRef, action: ActionName) -> None:
        """See Viewer: by the token of the user."""
        served = await self._sign_in.served(ref.group_kind)
        if served is None:
            raise ManifestInvalid(f"{ref}: the cluster does not serve this kind")
        annotations = annotations_for(action, self._sign_in.clock)
        client = self._sign_in.as_user(self._token)
        try:
            body = {"metadata": {"annotations": dict(annotations)}}
            await client.patch(served.endpoint(ref.namespace, ref.name), body, PatchType.MERGE)
        finally:
            await client.close()


@dataclass(slots=True)
class ServedKinds:
    """The kinds that the cluster serves, asked for now and then."""

    discovery: Discovery
    clock: Clock
    _found: Mapping[GroupKind, ApiResource] = field(default_factory=dict)
    _until: float = float("-inf")
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def of(self, kind: GroupKind) -> ApiResource | None:
        """The kind as the cluster serves it; None when it does not."""
        async with self._lock:
            if self.clock.monotonic() >= self._until or kind not in self._found:
                await self._refresh(kind)
        return self._found.get(kind)

    async def _refresh(self, kind: GroupKind) -> None:
        now = self.clock.monotonic()
        # A kind that is missing is asked for again, but not each time.
        if now < self._until - _KINDS_SECONDS + RIGHTS_SECONDS:
            return
        served, _ = await self.discovery.all_resources()
        found: dict[GroupKind, ApiResource] = {}
        for one in served:
            found.setdefault((one.group, one.kind), one)
        self._found, self._until = found, now + _KINDS_SECONDS


def _refused() -> SignInRefused:
    return SignInRefused("the cluster does not accept this token: it is wrong, or has expired")
