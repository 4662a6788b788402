"""A short soak: what `make soak` does for minutes, in seconds; and that its checks can fail."""

import asyncio
import random
from pathlib import Path

from setpoint.localcloud.google.operations import CatalogueObject
from soak.__main__ import Plan, soak
from soak.actors import Author
from soak.catalogue_subjects import catalogue_subjects
from soak.cloud import PROJECT, SoakCloud
from soak.process import Process
from soak.results import problems
from soak.subjects import Subject, differences

BUCKET = Subject("StorageBucket", "soak-1")


def test_everything_settles_after_faults_and_kills(tmp_path: Path) -> None:
    assert asyncio.run(soak(Plan(resources=40, seconds=6, kills=3, seed=1), tmp_path)) == 0


def test_kinds_of_the_catalogue_settle_after_faults_and_a_kill(tmp_path: Path) -> None:
    assert asyncio.run(soak(Plan(resources=60, seconds=4, kills=1, seed=1, catalogue=40), tmp_path)) == 0


def test_an_object_of_the_catalogue_that_differs_from_its_manifest_is_found() -> None:
    cloud = SoakCloud()
    (subject,) = catalogue_subjects(1, 1)
    manifest = subject.manifest(random.Random(1))
    cloud.google.state.objects[subject.key] = CatalogueObject({subject.member: "another"})

    (found,) = subject.differences(manifest, cloud)
    assert found.startswith(f"{subject.object}: {subject.member} is 'another', not 'author-")


def _made(cloud: SoakCloud) -> dict[str, object]:
    """A bucket as in its manifest, created directly."""
    manifest = {"metadata": {"labels": {"team": "a"}}, "spec": {"location": "EU", "storageClass": "NEARLINE"}}
    labels = {"team": "a", "managed-by-cnrm": "true"}
    body = {"name": BUCKET.name, "location": "EU", "storageClass": "NEARLINE", "labels": labels}
    cloud.call("POST", f"/storage/v1/b?project={PROJECT}", body)
    return manifest


def test_an_object_that_differs_from_its_manifest_is_found() -> None:
    cloud = SoakCloud()
    manifest = _made(cloud)
    assert differences(BUCKET, manifest, cloud) == []

    cloud.edit(BUCKET.path, {"labels": {"drifted": "m1"}})

    assert [one.partition(" is ")[0] for one in differences(BUCKET, manifest, cloud)] == ["b/soak-1: labels"]


def test_a_second_creation_is_found() -> None:
    cloud = SoakCloud()
    _made(cloud)
    _made(cloud)

    assert cloud.effects.wrong == ["POST /storage/v1/b for something that is there already"]


def test_the_deletion_of_a_declared_object_is_found() -> None:
    cloud = SoakCloud()
    _made(cloud)
    cloud.wanted.add(BUCKET.object)
    cloud.call("DELETE", BUCKET.path)

    assert cloud.effects.wrong == ["b/soak-1 was deleted while its author wanted it"]


def test_an_acknowledged_resource_that_is_not_stored_is_found(tmp_path: Path) -> None:
    cloud = SoakCloud()
    author = Author(Process(tmp_path, "http://127.0.0.1:1"), cloud, random.Random(1))
    author.declared[BUCKET] = _made(cloud)

    assert asyncio.run(problems(author.process, author, cloud)) == ["soak-1 was acknowledged and is lost"]
