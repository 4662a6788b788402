"""The fields of a live object that every step has to preserve."""

from collections.abc import Iterator, Mapping

from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, get_at
from tests.laws.google.cases import Case, leaves

# A path, its value before, and its value now.
Loss = tuple[str, Json | Missing, Json | Missing]


def losses(case: Case) -> list[Loss]:
    """The fields that are unmanaged, protected or unmodelled, and changed."""
    if case.view is None or case.raw is None:
        return []
    view, raw = case.fuzzed.view(case.harness), case.fuzzed.raw(case.harness)
    assert view is not None
    assert raw is not None
    return [*_of_fields(case, view), *_of_unmodelled_fields(case, raw)]


def _of_fields(case: Case, view: Mapping[str, Json]) -> Iterator[Loss]:
    for path, before in leaves(case.view or {}, Path()):
        after = get_at(view, path)
        is_kept = _is_not_managed(case, path) or (bool(before) and _is_protected(case, path))
        if is_kept and not _is_off(case, path, view) and not case.fuzzed.is_same(path, before, after):
            yield str(path), before, after


def _is_off(case: Case, path: Path, view: Mapping[str, Json]) -> bool:
    """Whether the field cannot exist now, because its switch is off; the switch is checked by itself."""
    switch = case.fuzzed.switches.get(path)
    return switch is not None and get_at(view, switch) is not True


def _of_unmodelled_fields(case: Case, raw: Mapping[str, Json]) -> Iterator[Loss]:
    for path in case.fuzzed.unmodelled:
        before, after = (get_at(one, Path.parse(path)) for one in (case.raw or {}, raw))
        if not case.fuzzed.is_kept(path, before, after):
            yield path, before, after


def _is_not_managed(case: Case, path: Path) -> bool:
    if _covers(case.policy.unmanaged, path):
        return not case.fuzzed.follows(case.spec, path)
    return (case.policy.ignores or _covers(case.policy.listed, path)) and _is_unspecified(case, path)


def _is_protected(case: Case, path: Path) -> bool:
    """A protected object is given up when the spec has any field of it."""
    return _is_unspecified(case, path) and any(
        one.covers(path) and _is_unspecified(case, one) for one in case.fuzzed.protected
    )


def _is_unspecified(case: Case, path: Path) -> bool:
    """Whether the spec has neither the field, nor an object around it, nor a field that it follows from."""
    here: Json | Missing = case.fuzzed.declared(case.manifest)
    for step in path.steps:
        if isinstance(here, Missing):
            break
        if not isinstance(here, Mapping) or (step == "external" and "name" in here):
            return False
        here = here.get(str(step), MISSING)
    return isinstance(here, Missing) and not case.fuzzed.follows(case.spec, path)


def _covers(listed: tuple[str, ...], path: Path) -> bool:
    return any(Path.parse(one).covers(path) for one in listed)
