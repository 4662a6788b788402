"""Checks of manifests: everything that is wrong with them, each with its place; and annotations without effect."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from setpoint.app import dry_run_apply, require_valid
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.problems import MAX_PROBLEMS, Problems, joined_problems
from setpoint.engine.conditions import join_names
from setpoint.engine.context import EngineContext
from setpoint.engine.dependency_graph import reconcile_order
from setpoint.engine.intent import check_manifest
from setpoint.engine.kind import Dependency
from setpoint.engine.owners.children import is_unreconciled
from setpoint.engine.references import dependencies_of
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import ManifestInvalid, NotReady, SetpointError, UserError
from setpoint.library.manifests.reading import LoadedManifest, ReadManifests


@dataclass(frozen=True, slots=True)
class CheckedManifests:
    """Valid manifests, and the dry run of each."""

    manifests: Sequence[LoadedManifest]
    drafts: Sequence[Resource]


async def dry_run_manifests(read: ReadManifests, engine: EngineContext) -> CheckedManifests:
    """The manifests, once each was checked and applied in a dry run; ManifestInvalid has a line for each mistake."""
    wrong = list(read.problems)
    drafts: list[Resource] = []
    for manifest in read.manifests:
        if len(wrong) >= MAX_PROBLEMS:
            break
        found = manifest_problems(manifest, engine)
        wrong += found
        if not found:
            try:
                drafts.append(await dry_run_apply(manifest.tree, engine))
            except (UserError, NotReady) as error:
                wrong += manifest.placed(error)
            except SetpointError as error:
                raise ManifestInvalid(f"{manifest.place_of(error)}: {error}") from error
    if wrong:
        raise joined_problems(wrong)
    return CheckedManifests(read.manifests, drafts)


def check_manifests(manifests: Sequence[LoadedManifest], engine: EngineContext) -> list[ResourceRef]:
    """The resources that have a kind, each after its dependencies; ManifestInvalid has a line for each mistake."""
    wrong = [one for manifest in manifests for one in manifest_problems(manifest, engine)]
    if wrong:
        raise joined_problems(wrong)
    return in_order(manifests, engine)


def in_order(manifests: Sequence[LoadedManifest], engine: EngineContext) -> list[ResourceRef]:
    """The resources that valid manifests declare and that have a kind, each after its dependencies."""
    dependencies: dict[ResourceRef, Sequence[Dependency]] = {
        manifest.ref: dependencies_of(manifest.resource, engine.resource_types)
        for manifest in manifests
        if not is_unreconciled(manifest.ref, engine)
    }
    return list(reconcile_order(dependencies))


def named_by(read: ReadManifests, engine: EngineContext) -> list[ResourceRef]:
    """The resources that manifests name. Their specs are not checked: only the names count."""
    wrong = list(read.problems)
    for manifest in read.manifests:
        problems = Problems()
        if not is_unreconciled(manifest.ref, engine):
            problems.collect(engine.resource_type_of, manifest.resource)
        problems.collect(require_valid, manifest.tree, engine)
        wrong += _placed(manifest, problems)
    if wrong:
        raise joined_problems(wrong)
    return [manifest.ref for manifest in read.manifests]


def manifest_problems(manifest: LoadedManifest, engine: EngineContext) -> Sequence[ManifestInvalid]:
    """What is wrong with a manifest, before any service or cluster is asked; each with its place."""
    problems, members, resource = Problems(), Problems(), manifest.resource
    members.collect(require_valid, manifest.tree, engine)
    if not is_unreconciled(manifest.ref, engine):
        kind = problems.collect(engine.resource_type_of, resource)
        # A spec whose name is misspelt lacks every field.
        if kind is not None and ("spec" in manifest.tree or not members.found):
            problems.collect(check_manifest, resource, kind)
            problems.collect(dependencies_of, resource, engine.resource_types)
    problems.add(members.found)
    return _placed(manifest, problems)


def _placed(manifest: LoadedManifest, problems: Problems) -> Sequence[ManifestInvalid]:
    return manifest.placed(joined_problems(problems.found)) if problems.found else ()


# --- Annotations without effect ---------------------------------------------------------------------------------------


def warn_about_manifests(
    manifests: Sequence[LoadedManifest], engine: EngineContext, warn: Callable[[str], None]
) -> None:
    """Warns of each annotation in manifests, by its place."""
    for manifest in manifests:
        if manifest.ref.group_kind in engine.resource_types:
            for one in engine.annotation_warnings(manifest.resource):
                warn(f"{manifest.place_of_annotation(one.key)}: {one.message}")


def warn_about_resources(
    resources: Iterable[Resource | None], engine: EngineContext, warn: Callable[[str], None]
) -> None:
    """Warns of annotations of declared resources, by resource."""
    known = [one for one in resources if one is not None and one.ref.group_kind in engine.resource_types]
    found = ((one.ref, str(problem.message)) for one in known for problem in engine.annotation_warnings(one))
    warn_of(found, warn)


def warn_of(found: Iterable[tuple[ResourceRef, str]], warn: Callable[[str], None]) -> None:
    """One warning for all resources of which the same is said."""
    refs: dict[str, list[str]] = defaultdict(list)
    for ref, text in found:
        refs[text].append(str(ref))
    for text, named in refs.items():
        warn(f"{join_names(named)}: {text}")
