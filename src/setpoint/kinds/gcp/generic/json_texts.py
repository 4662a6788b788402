"""JSON that is a text in the spec, such as the schema of a table: members in it that are unmanaged."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from setpoint.core.values.canonical import same
from setpoint.core.values.paths import Path


def without_unmanaged(spec: Mapping[str, Any], live: Mapping[str, Any], paths: Sequence[Path]) -> Mapping[str, Any]:
    """The declared fields; of a text with unmanaged members, the live one where the two differ in these alone.

    Otherwise it is sent without them, which leaves them as they are. A path such as `spec.schema.fields.policyTags`
    means that member of the objects at every depth.
    """
    found = dict(spec)
    for field in {str(path.steps[1]) for path in paths}:
        names = {str(path.steps[-1]) for path in paths if path.steps[1] == field}
        if not isinstance(spec.get(field), str):
            continue
        own = _without(json.loads(spec[field]), names)
        now = live.get(field)
        is_same = isinstance(now, str) and same(own, _without(json.loads(now), names))
        found[field] = now if is_same else json.dumps(own)
    return found


def _without(value: Any, names: Collection[str]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, Mapping):
        return {name: _without(one, names) for name, one in value.items() if name not in names}
    return [_without(one, names) for one in value] if isinstance(value, list) else value
