"""Warnings about annotations that have no effect, on standard error: with file and line, or with the resources."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from setpoint.cli.manifests import LoadedManifest
from setpoint.engine.conditions import join_names
from setpoint.engine.context import EngineContext
from setpoint.engine.resource import Resource, ResourceRef


def warn_about_manifests(
    manifests: Sequence[LoadedManifest], engine: EngineContext, warn: Callable[[str], None]
) -> None:
    """Warns of each annotation in files, by file and line."""
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
