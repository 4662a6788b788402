"""The checks of a soak of replicas: every shard has a holder, no edit is lost, none is executed twice."""

from collections.abc import Iterator, Sequence
from typing import Final

from soak.fleet.api import Tree
from soak.fleet.author import Author
from soak.fleet.cluster_objects import TENANT
from soak.fleet.fleet import Fleet, Loss
from soak.fleet.leases import Change
from soak.fleet.subjects import Subject

# As the product has it, and its docs.
LEASE_SECONDS: Final = 15.0
LATE_SECONDS: Final = 2.0
# An edit waits at most for the next holder, which has other resources to reconcile as well.
_SLOW_SECONDS: Final = 30.0


def problems(fleet: Fleet, author: Author, resources: Sequence[Tree]) -> list[str]:
    """Every failed check, as a text."""
    found = [
        problem
        for subject in fleet.subjects
        for problem in (_wrong_in_cluster if subject.is_in_cluster else _wrong_with)(subject, author)
    ]
    found += [f"{one['metadata']['name']} is not ready: {one.get('status')}" for one in unready(resources)]
    return found + [bug for process in fleet.processes for bug in process.bugs()]


def lateness(fleet: Fleet) -> list[float]:
    """For each shard of a process that was killed: the seconds between its lease's end and its next holder."""
    killed = {holder for loss in fleet.losses if loss.killed for holder in loss.holders}
    return sorted(one.at - one.since - LEASE_SECONDS for one in _taken_over(fleet) if one.before in killed)


def hand_overs(fleet: Fleet) -> list[float]:
    """For each shard that was given back: the seconds until another process had it."""
    return sorted(one.at - one.since for one in fleet.leases.changes() if one.was_released)


def too_late(fleet: Fleet) -> list[str]:
    """Shards without a holder for longer than a lease and a margin, and edits that took too long."""
    shards = [
        f"a shard had no holder for {late:.2f} s after its lease" for late in lateness(fleet) if late > LATE_SECONDS
    ]
    slow = [edit for edit in fleet.author.edits if edit.done_at - edit.at > _SLOW_SECONDS]
    return [*shards, *(f"an edit took long: {edit.text}" for edit in slow)]


def summary(fleet: Fleet, author: Author) -> dict[str, str]:
    """What happened, in figures."""
    kills = [loss for loss in fleet.losses if loss.killed]
    return {
        "kills": str(sum(len(loss.holders) for loss in kills)),
        "shards of killed processes": str(sum(len(loss.shards) for loss in kills)),
        "from the end of a lease to its next holder": spread_of(lateness(fleet)),
        "from a kill to an edit made right after it": spread_of(_edit_seconds(kills)),
        "from a release to the next holder": spread_of(hand_overs(fleet)),
        "edits": str(len(author.edits)),
        "any edit": spread_of([edit.done_at - edit.at for edit in author.edits]),
        "the slowest": ", ".join(_slowest(author)),
        "changes sent to the cloud": str(len(author.cloud.written)),
        "writes of objects in the cluster": str(sum(map(len, author.objects.versions.values()))),
        "reads of the cloud": str(author.cloud.journal.counts()["byMethod"].get("GET", 0)),
    }


def spread_of(seconds: Sequence[float]) -> str:
    """How many, and how long: in the middle, and at most."""
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    return f"{len(ordered)}, median {ordered[len(ordered) // 2]:.2f} s, at most {ordered[-1]:.2f} s"


def _wrong_with(subject: Subject, author: Author) -> Iterator[str]:
    written = author.cloud.written
    made = [one for one in written if subject.is_made_by(one)]
    if [one.status for one in made] != [200]:
        yield f"{subject.name}: asked for {len(made)} times: {[(one.writer, one.status) for one in made]}"
    changes = author.cloud.writes_to(subject.path)
    sent = [(one.writer, subject.mark_in(one.body) if isinstance(one.body, dict) else one.method) for one in changes]
    wanted = [subject.mark(edition) for edition in range(1, author.last_edition(subject) + 1)]
    if [mark for _, mark in sent] != wanted:
        yield f"{subject.name}: sent {sent}, not each of {wanted} once"


def _wrong_in_cluster(subject: Subject, author: Author) -> Iterator[str]:
    """The object has had every edition once; each write was on behalf of the tenant, and there was no other."""
    versions = author.objects.versions.get(subject.name, [])
    if len({one.uid for one in versions}) != 1:
        yield f"{subject.name}: made {len({one.uid for one in versions})} times"
    wanted = [subject.mark(edition) for edition in range(author.last_edition(subject) + 1)]
    if [one.edition for one in versions] != wanted:
        yield f"{subject.name}: had {[one.edition for one in versions]}, not each of {wanted} once"
    if author.objects.audit_log is not None:
        written = author.objects.writes_to(subject.name)
        tenant = f"system:serviceaccount:{author.namespace}:{TENANT}"
        others = {one.on_behalf_of or one.user for one in written} - {tenant}
        if len(written) != len(wanted) or others:
            yield f"{subject.name}: {len(written)} writes instead of {len(wanted)}, on behalf of {sorted(others)}"


def unready(resources: Sequence[Tree]) -> list[Tree]:
    """The resources with a status that does not report the newest generation as ready."""
    return [one for one in resources if not _is_ready(one)]


def _is_ready(resource: Tree) -> bool:
    status = resource.get("status", {})
    ready = [condition["status"] for condition in status.get("conditions", ()) if condition["type"] == "Ready"]
    return ready == ["True"] and status.get("observedGeneration") == resource["metadata"]["generation"]


def _taken_over(fleet: Fleet) -> list[Change]:
    return [one for one in fleet.leases.changes() if not one.was_released]


def _slowest(author: Author) -> list[str]:
    return [edit.text for edit in sorted(author.edits, key=lambda edit: edit.at - edit.done_at)[:3]]


def _edit_seconds(losses: Sequence[Loss]) -> list[float]:
    return [edit.done_at - loss.at for loss in losses for edit in loss.edits]
