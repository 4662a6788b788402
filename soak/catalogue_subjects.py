"""Resources of many kinds of the catalogue in a soak: each varies one text of its object."""

import random
import re
from dataclasses import dataclass
from typing import Any, Final

from setpoint.catalogue.rows import KindFacts, facts_of
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.paths import Path, get_at, set_at
from setpoint.localcloud.cloud import Cloud
from setpoint.localcloud.google.collections import ApiPath, collection_of, parse_path
from setpoint.localcloud.google.operations import CatalogueObject
from soak.cloud import NAME_LABEL, SoakCloud, catalogue_object_name
from tests.catalogue_kinds.contract_run import representative_kinds, tried_kinds
from tests.catalogue_kinds.fixtures import fixture_of
from tests.catalogue_kinds.row_fixture import RowFixture
from tests.catalogue_kinds.spec_values import PROJECT, location_of

# The last parts of the ids of such objects begin so.
PREFIX: Final = "soak-c"
_LABELLED: Final = ("labels", "userLabels")
_KEYS: Final = ("shortName", "groupKey.id")


@dataclass(frozen=True, slots=True)
class CatalogueSubject:
    """One resource of a kind of the catalogue, whatever its spec is just now."""

    group: str
    kind: str
    name: str

    @property
    def fixture(self) -> type[RowFixture]:
        """The least that its spec can say, and the field that is varied."""
        return fixture_of((self.group, self.kind))

    @property
    def row(self) -> KindFacts:
        """What the catalogue says of the kind."""
        return self.fixture.row

    @property
    def location(self) -> str:
        """The relative name of its object."""
        own = self.row.own_id.replace("{id}", self.name).replace("{project}", PROJECT) or self.name
        return location_of(self.row, own)

    @property
    def path(self) -> str:
        """Where its object is in the API."""
        return f"/{self.row.host}/{self.row.prefix}{self.location}"

    @property
    def key(self) -> str:
        """Its object's key in the state of the local cloud."""
        parsed = parse_path(f"{self.row.prefix}{self.location}")
        assert parsed is not None
        return f"{self.fixture.service}/{parsed.name}"

    @property
    def object(self) -> str:
        """Its object's name in the counts."""
        return catalogue_object_name(self.key)

    @property
    def member(self) -> str:
        """The member of the object that is varied."""
        return self.fixture.field.member

    def manifest(self, draw: random.Random) -> dict[str, Any]:
        """A manifest with a spec that is drawn."""
        annotations = {
            "cnrm.cloud.google.com/project-id": PROJECT,
            "cnrm.cloud.google.com/reconcile-interval-in-seconds": "30",
        }
        text = f"author-{draw.randrange(10**9)}"
        spec = set_at({"spec": self.fixture.minimal}, Path.parse(self.fixture.field.path), text)
        if self.row.id.key:
            spec = set_at(spec, Path(("spec", *self.row.id.key[0].split("."))), self.name)
        assert isinstance(spec, dict)
        labels = {"labels": {NAME_LABEL: self.name}} if self.row.id.where == "service" and self.row.labels else {}
        return {
            "apiVersion": f"{self.group}/{self.row.version}",
            "kind": self.kind,
            "metadata": {"name": self.name, "annotations": annotations, **labels},
            **spec,
        }

    def differences(self, manifest: dict[str, Any], cloud: SoakCloud) -> list[str]:
        """Whether the object differs from the manifest in the member that is varied."""
        answer = cloud.call("GET", cloud.path_of(self.path, self.object))
        if answer.status != 200:
            return [f"{self.object}: GET answers {answer.status}"]
        wanted = get_at(manifest, Path.parse(self.fixture.field.path))
        got = get_at(answer.body, Path.parse(self.member))
        return [] if wanted == got else [f"{self.object}: {self.member} is {got!r}, not {wanted!r}"]


def catalogue_subjects(kinds: int, count: int) -> tuple[CatalogueSubject, ...]:
    """So many resources of so many kinds; those that have all mechanisms between them come first."""
    chosen = _chosen(kinds)
    return tuple(CatalogueSubject(*chosen[number % len(chosen)], f"{PREFIX}{number}") for number in range(count))


def _chosen(count: int) -> list[GroupKind]:
    varied = [name for name in tried_kinds() if _varies_text(name)]
    made = [name for name in varied if facts_of(name).id.where == "service"]
    first = [*made, *(name for name in representative_kinds() if name in varied and name not in made)]
    others = [name for name in varied if name not in first]
    step = max(1, len(others) // max(1, count - len(first)))
    return [*first, *others[::step]][:count]


def _varies_text(name: GroupKind) -> bool:
    fixture, row = fixture_of(name), facts_of(name)
    # The soak looks an object up by the name that its author gives it, or by what tells it from others.
    subject = CatalogueSubject(*name, f"{PREFIX}0")
    # Some are named after their project, of which there is one.
    is_named = row.inside is None and row.id.where in ("query", "body", "url") and subject.name in subject.location
    is_found = is_named or (row.id.where == "service" and _tells_apart(row, fixture.field.member))
    if row.id_pattern and re.fullmatch(row.id_pattern, f"{PREFIX}0") is None:
        return False
    return is_found and fixture.can_update and fixture.field.first == "first" and "delete" in row.methods


def _tells_apart(row: KindFacts, varied: str) -> bool:
    """Whether objects whose ids the service makes have a label, or a member for one that is not varied."""
    return row.labels in _LABELLED or (len(row.id.key) == 1 and row.id.key[0] != varied and row.id.key[0] in _KEYS)


def make_containers(subjects: tuple[CatalogueSubject, ...], cloud: Cloud) -> None:
    """The objects that the others are in: they are not declared."""
    for subject in subjects:
        service, *parts = subject.key.split("/")
        for length in range(2, len(parts) - 1):
            if collection_of(service, ApiPath("", "", tuple(parts[:length]))) is not None:
                cloud.google.state.objects[f"{service}/{'/'.join(parts[:length])}"] = CatalogueObject({})
