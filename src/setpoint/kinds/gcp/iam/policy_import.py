"""The policies of the objects that an import knows, and of the project itself."""

from collections.abc import Iterator
from typing import Final

from setpoint.engine.capabilities import ImportPlace, ListScope, LiveIdentity
from setpoint.kinds.gcp.iam.targets import BUCKET, BUCKET_PREFIX, PolicyTarget, has_policy
from setpoint.kinds.gcp.shared.config_connector import PROJECT_ANNOTATION

_PROJECT: Final = "Project"


def policy_scopes(place: ImportPlace) -> Iterator[ListScope]:
    """A list for each object that has a policy: what is imported or declared, and the project."""
    if place.project:
        yield _scope(_PROJECT, f"projects/{place.project}")
    yield from (_scope(kind, location) for (_, kind), location in place.known if has_policy(kind))


def _scope(kind: str, location: str) -> ListScope:
    return ListScope(f"{kind} {location}")


def target_in(list_scope: ListScope) -> tuple[PolicyTarget, str]:
    """The object with the one policy of a list, and its project."""
    kind, _, name = list_scope.partition(" ")
    known = PolicyTarget(kind, name)
    return (PolicyTarget(kind, f"{BUCKET_PREFIX}{name.rpartition('/')[2]}") if kind == BUCKET else known), known.project


def identity_of(target: PolicyTarget, bucket_project: str) -> LiveIdentity:
    """What a manifest says of the policy of an object. The name of a bucket does not tell its project."""
    named = f"projects/{bucket_project or '_'}/buckets/{target.bucket}" if target.bucket else target.name
    project = bucket_project if target.bucket else target.project
    return LiveIdentity(
        "",
        {"resourceRef": {"kind": target.kind, "external": named}},
        {PROJECT_ANNOTATION: project} if project and "/" not in project else {},
        name=f"{target.kind.lower()}-{target.name.rpartition('/')[2]}",
    )
