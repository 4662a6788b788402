"""What a write sends: a new user whole; of one that is there, what is to be another."""

from collections.abc import Mapping
from typing import Final

from setpoint.core.canonical import same
from setpoint.core.paths import Path
from setpoint.core.plan import Write
from setpoint.core.values import Json
from setpoint.engine.kind import Intent
from setpoint.engine.resource import Tree
from setpoint.kinds.gcp.sql_user.place import place_of
from setpoint.kinds.gcp.sql_user.spec import BUILT_IN, NEVER

_PASSWORD: Final = Path(("spec", "password"))
_POLICY: Final = Path(("spec", "passwordPolicy"))
_UNSET: Final[Mapping[str, Json]] = {
    "allowedFailedAttempts": 0,
    "enableFailedAttemptsCheck": False,
    "enablePasswordVerification": False,
    "passwordExpirationDuration": NEVER,
}


def insert_body(intent: Intent, wanted: Tree) -> dict[str, Json]:
    """A new user; what is as it would be anyway is left out."""
    place, user = place_of(intent.location), _spec(wanted)
    host, policy = intent.resource.spec.get("host"), _policy(user)
    body: dict[str, Json] = {"host": host} if host else {}
    body |= {"instance": place.instance, "name": place.name, **_password(user)}
    if policy:
        body["passwordPolicy"] = policy
    return body if user.get("type", BUILT_IN) == BUILT_IN else {**body, "type": user["type"]}


def changed_members(wanted: Tree, write: Write) -> dict[str, Json]:
    """What `write` has to send. The password only if it is another one; the policy always whole, or not at all."""
    user, paths = _spec(wanted), [change.path for change in write.changes]
    members = _password(user) if _PASSWORD in paths else {}
    policy = _policy(user)
    if any(_POLICY.covers(path) for path in paths):
        # The service takes it for the whole policy. The duration alone has no word for "unset".
        unset = {name: value for name, value in _UNSET.items() if value != NEVER}
        members["passwordPolicy"] = {**unset, **policy}
    elif policy and members:
        members["passwordPolicy"] = policy
    return members


def _spec(wanted: Tree) -> Mapping[str, Json]:
    spec = wanted["spec"]
    assert isinstance(spec, Mapping)
    return spec


def _password(user: Mapping[str, Json]) -> dict[str, Json]:
    """Nothing when it is not ours to set: unmanaged, for example."""
    password = user.get("password")
    text = password.get("value") if isinstance(password, Mapping) else None
    return {"password": text} if isinstance(text, str) else {}


def _policy(user: Mapping[str, Json]) -> dict[str, Json]:
    """What the policy sets; nothing in it is a default."""
    policy = user.get("passwordPolicy")
    members = policy if isinstance(policy, Mapping) else {}
    return {name: members[name] for name, unset in _UNSET.items() if not same(members.get(name, unset), unset)}
