"""Which of what stood in one store stands for the same in another: proved there, never assumed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from setpoint.engine.exporting import secret_keys
from setpoint.engine.exports import ExportedObject, ExportedResource
from setpoint.engine.intent import intent_of, resolve_as_it_is
from setpoint.engine.kind import AnyKind, Intent, Reconciliation, Resolved, SecretKey
from setpoint.engine.moving import Passage
from setpoint.engine.owner import Owner
from setpoint.engine.references import resolve_what_is_there, secret_value
from setpoint.engine.remembered import Remembered
from setpoint.engine.report import listed
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.scene import Management, World, management_of
from setpoint.errors import NotReady, UserError

_LOOK: Final = "the next step looks closely"
_Secrets: TypeAlias = Mapping[ResourceRef, ExportedObject]
# New versions of secrets, by field and old version.
_Versions: TypeAlias = Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class Crossing:
    """What can be carried over, and what people should know where something cannot."""

    passage: Passage
    remarks: tuple[str, ...] = ()


async def crossing_for(item: ExportedResource, there: Resource, secrets: _Secrets, world: World) -> Crossing:
    """The way of one resource: `there` is how it stands in the new store, with all that it refers to."""
    if isinstance(world.sort_of(there), Owner):
        # Its children are compared with what was generated last, and that went along in its status.
        return Crossing(Passage(), _remarks(item, "", {}))
    kind = world.kind_of(there)
    keys = secret_keys(there, kind)
    versions = _carried_secrets(item, keys, await resolve_what_is_there(keys, world.store), secrets)
    try:
        intent = await resolve_as_it_is(there, world)
    except (NotReady, UserError) as error:
        return Crossing(Passage({}, versions), _remarks(item, str(error), versions))
    versions = {**versions, **_carried_values(item, there, keys, intent)}
    why = _hindrance(item, there, kind, intent)
    is_whole = all((name, version) in versions for name, version in item.facts.versions.items())
    intents = {item.facts.intent: intent.digest} if item.facts.intent and is_whole and not why else {}
    return Crossing(Passage(intents, versions), _remarks(item, _doubt(item, kind, why), versions))


def _carried_secrets(item: ExportedResource, keys: Sequence[SecretKey], here: Resolved, secrets: _Secrets) -> _Versions:
    """The versions of secrets whose values are surely those that there are here."""
    old = {key: item.facts.versions.get(key.field) for key in keys}
    return {
        (key.field, version): here.versions[key.field]
        for key, version in old.items()
        if version is not None and key.field in here.versions and _is_same(key, version, here, secrets.get(key.secret))
    }


def _is_same(key: SecretKey, version: str, here: Resolved, secret: ExportedObject | None) -> bool:
    """Whether this is the very Secret, or its value went along and is the one that there is here."""
    if version == here.versions[key.field]:
        return True
    if secret is None or version != f"{secret.facts.version}/{key.key}":
        return False
    return secret_value(key, secret.resource) == here.secrets[key.field]


def _carried_values(item: ExportedResource, there: Resource, keys: Sequence[SecretKey], intent: Intent) -> _Versions:
    """The versions of values that stand in the spec itself: the same spec holds the same."""
    if there.author_digest != item.resource.author_digest:
        return {}
    in_secrets = {key.field for key in keys}
    own = {name: new for name, new in intent.resolved.versions.items() if name not in in_secrets}
    return {(name, old): own[name] for name, old in item.facts.versions.items() if name in own}


def _hindrance(item: ExportedResource, there: Resource, kind: AnyKind, intent: Intent) -> str:
    """Why the intent is not proved to be the same; empty when it is.

    With the old versions of its secrets in the place of the new ones, it has to come to the old digest: then nothing
    else that an intent covers has changed, neither spec nor labels, annotations, references or the kind itself.
    """
    if item.facts.intent is None:
        return f"what it refers to was not there where it came from: {_LOOK}"
    if there.author_digest != item.resource.author_digest:
        return f"its spec reads differently here: {_LOOK}"
    before = intent_of(there, kind, replace(intent.resolved, versions=item.facts.versions))
    if before.digest != item.facts.intent:
        return f"its labels, what it refers to, or its kind mean something else here: {_LOOK}"
    return ""


def _doubt(item: ExportedResource, kind: AnyKind, why: str) -> str:
    """Why the next step of a resource that keeps a cookie cannot go by it; empty when it can."""
    if kind.reconciliation is Reconciliation.STATELESS:
        return ""
    cookie = Remembered.of(item.resource).cookie
    is_settled = cookie is not None and cookie.intent == item.facts.intent
    if why or is_settled or management_of(item.resource.annotations) is not Management.FULL:
        return why
    return "not settled where it came from: what was left to do is left to do here"


def _remarks(item: ExportedResource, doubt: str, versions: _Versions) -> tuple[str, ...]:
    """What people should know before the next step."""
    facts, sent = item.facts, Remembered.of(item.resource).secrets
    if facts.deleting:
        return ("its deletion goes on here",)
    again = [name for name, old in facts.versions.items() if sent.get(name) == old and (name, old) not in versions]
    told = f"{listed(again)} is not known to be the same here: it counts as new, and is sent once" if again else ""
    return tuple(remark for remark in (doubt, told) if remark)
