"""A case: an object of another writer, an author's manifest, and what has to be preserved of the object."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from hypothesis import strategies as st

from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path
from tests.laws.google.cloud_harness import CloudHarness, manifest, run
from tests.laws.google.from_types import Author, specs
from tests.laws.google.fuzzed_kind import FuzzedKind, Spec

CNRM: Final = "cnrm.cloud.google.com"
_RARELY: Final = st.sampled_from((False,) * 6 + (True,))
_OFTEN: Final = st.sampled_from((False,) + (True,) * 4)


@dataclass(frozen=True)
class Policy:
    """The field policy of the author."""

    unmanaged: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    ignores: bool = False

    @property
    def annotations(self) -> dict[str, str]:
        return {
            **({f"{CNRM}/unmanaged": ",".join(self.unmanaged)} if self.unmanaged else {}),
            **({f"{CNRM}/default-to-gcp-fields": ",".join(self.listed)} if self.listed else {}),
            **({f"{CNRM}/ignore-unspecified-fields": "true"} if self.ignores else {}),
        }


@dataclass(frozen=True)
class Case:
    """The state before a step. `view` and `raw` are the live object, if there is one."""

    fuzzed: FuzzedKind
    harness: CloudHarness
    manifest: dict[str, Any]
    view: Mapping[str, Json] | None
    raw: Mapping[str, Json] | None
    policy: Policy

    @property
    def spec(self) -> Spec:
        found: Spec = self.manifest["spec"]
        return found

    @property
    def is_clone(self) -> bool:
        """Whether the object is cloned: its immutable fields are known only after that."""
        return bool(self.spec.get("cloneSource"))

    def with_current_live(self) -> "Case":
        """The same, with the live object as another writer has left it."""
        self.harness.cloud.journal.clear()
        return replace(self, view=self.fuzzed.view(self.harness), raw=self.fuzzed.raw(self.harness))

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(repr(self))

    def __repr__(self) -> str:
        shown = {"manifest": self.manifest, "live": self.raw}
        return msgspec.json.format(msgspec.json.encode(shown)).decode()


@st.composite
def cases(draw: st.DrawFn, fuzzed: FuzzedKind) -> Case:
    """Any spec × any live object × any policy."""
    harness = CloudHarness()
    version = fuzzed.surroundings(draw, harness)
    run(harness.create_references(version))
    if not draw(_RARELY):
        fuzzed.make(draw, harness, version)
    return draw(_with_drawn_spec(fuzzed, harness, version))


@st.composite
def new_cases(draw: st.DrawFn, fuzzed: FuzzedKind) -> Case:
    """Any spec × any policy, without a live object."""
    harness = CloudHarness()
    version = fuzzed.surroundings(draw, harness)
    run(harness.create_references(version))
    return draw(_with_drawn_spec(fuzzed, harness, version))


def case_of(fuzzed: FuzzedKind, harness: CloudHarness, spec: Spec, policy: Policy, **metadata: Any) -> Case:
    """The case of this spec and policy, over the live object."""
    names = {"labels": {}, "annotations": policy.annotations, **metadata}
    declared = manifest(f"{fuzzed.group}/v1beta1", fuzzed.kind, fuzzed.name, spec, **names)
    harness.cloud.journal.clear()
    return Case(fuzzed, harness, declared, fuzzed.view(harness), fuzzed.raw(harness), policy)


@st.composite
def with_live_edit(draw: st.DrawFn, case: Case) -> Case:
    """The same after another writer changed the live object."""
    case.fuzzed.edit_live(draw, case.harness)
    return case.with_current_live()


@st.composite
def with_new_spec(draw: st.DrawFn, case: Case) -> Case:
    """The same object after its author wrote something else."""
    return draw(_with_drawn_spec(case.fuzzed, case.harness, case.harness.database_version))


@st.composite
def _with_drawn_spec(draw: st.DrawFn, fuzzed: FuzzedKind, harness: CloudHarness, version: str) -> Case:
    view = fuzzed.view(harness)
    spec = draw(_specs(fuzzed, view, version))
    policy = draw(_policies(fuzzed, view, spec))
    labels = st.dictionaries(st.sampled_from(("team", "stage", "example.com/x")), st.sampled_from(("red", "blue")))
    return case_of(fuzzed, harness, spec, policy, labels=draw(labels))


@st.composite
def _specs(draw: st.DrawFn, fuzzed: FuzzedKind, view: Mapping[str, Json] | None, version: str) -> dict[str, Any]:
    about = draw(st.sampled_from(fuzzed.fields))
    live = MISSING if view is None else view["spec"]
    assert isinstance(live, Mapping | Missing)
    spec = fuzzed.possible(draw(specs(fuzzed.spec_type, Author(fuzzed.words, about, live))), version)
    return fuzzed.sensible(spec, live, version) if draw(_OFTEN) else spec


@st.composite
def _policies(draw: st.DrawFn, fuzzed: FuzzedKind, view: Mapping[str, Json] | None, spec: dict[str, Any]) -> Policy:
    everything = fuzzed.policy_paths
    here = {str(path) for tree in (view or {}, {"spec": spec}) for path, _ in leaves(tree, Path())}
    likely = [path for path in everything if path in here] or everything
    some = st.lists(st.sampled_from(likely) | st.sampled_from(everything), max_size=2, unique=True).map(tuple)
    none: st.SearchStrategy[tuple[str, ...]] = st.just(())
    return Policy(draw(none | some), draw(none | some), draw(_RARELY | st.booleans()))


def leaves(value: Json | Missing, at: Path) -> Iterator[tuple[Path, Json]]:
    """Every value that is no object, with its path; a list is one value."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from leaves(one, at / name)
    elif not isinstance(value, Missing):
        yield at, value
