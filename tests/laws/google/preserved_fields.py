"""What has to be kept of a live object, whatever a step does to the rest."""

from collections.abc import Iterator, Mapping

from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, get_at
from tests.laws.google.cases import Case, leaves

# A path, what stood there, and what stands there now.
Loss = tuple[str, Json | Missing, Json | Missing]


def losses(case: Case) -> list[Loss]:
    """What was left to others, or protected, or without a word in the spec, and is not as it was."""
    if case.view is None or case.raw is None:
        return []
    view, raw = case.fuzzed.view(case.harness), case.fuzzed.raw(case.harness)
    assert view is not None
    assert raw is not None
    return [*_of_fields(case, view), *_of_what_is_not_modelled(case, raw)]


def _of_fields(case: Case, view: Mapping[str, Json]) -> Iterator[Loss]:
    for path, before in leaves(case.view or {}, Path()):
        after = get_at(view, path)
        is_kept = _is_left_to_others(case, path) or (bool(before) and _is_protected(case, path))
        if is_kept and not _is_off(case, path, view) and not case.fuzzed.is_same(path, before, after):
            yield str(path), before, after


def _is_off(case: Case, path: Path, view: Mapping[str, Json]) -> bool:
    """Whether there can be no such field now; whether its switch had to stay is asked of the switch."""
    switch = case.fuzzed.switches.get(path)
    return switch is not None and get_at(view, switch) is not True


def _of_what_is_not_modelled(case: Case, raw: Mapping[str, Json]) -> Iterator[Loss]:
    for path in case.fuzzed.unspoken:
        before, after = (get_at(one, Path.parse(path)) for one in (case.raw or {}, raw))
        if not case.fuzzed.is_kept(path, before, after):
            yield path, before, after


def _is_left_to_others(case: Case, path: Path) -> bool:
    if _covers(case.policy.unmanaged, path):
        return not case.fuzzed.follows(case.spec, path)
    return (case.policy.ignores or _covers(case.policy.listed, path)) and _is_unsaid(case, path)


def _is_protected(case: Case, path: Path) -> bool:
    """Of what is protected as a whole, a word of the author's is enough to take it back."""
    return _is_unsaid(case, path) and any(one.covers(path) and _is_unsaid(case, one) for one in case.fuzzed.protected)


def _is_unsaid(case: Case, path: Path) -> bool:
    """Whether the author says nothing there, nor of what it is in, and nothing that it follows from."""
    here: Json | Missing = case.fuzzed.said(case.manifest)
    for step in path.steps:
        if isinstance(here, Missing):
            break
        if not isinstance(here, Mapping) or (step == "external" and "name" in here):
            return False
        here = here.get(str(step), MISSING)
    return isinstance(here, Missing) and not case.fuzzed.follows(case.spec, path)


def _covers(listed: tuple[str, ...], path: Path) -> bool:
    return any(Path.parse(one).covers(path) for one in listed)
