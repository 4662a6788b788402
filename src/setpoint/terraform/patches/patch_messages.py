"""The diagnostics of `setpoint_patch`: conflicts, missing targets, and what becomes of fields that are given up."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from setpoint.core.values.canonical import canonical, same
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.messages import MessageTerm
from setpoint.core.values.paths import Path
from setpoint.errors import HeldByOthers, SetpointError
from setpoint.terraform.cty.values import AttributePath, AttributeValues
from setpoint.terraform.framework.diagnostics import Diagnostic, diagnostics_for, error, warning
from setpoint.terraform.patches.patch_config import is_restored, patch_attribute
from setpoint.terraform.resources.object_config import ID_ANNOTATION, annotated_id
from setpoint.terraform.resources.shown_values import is_shown
from setpoint.terraform.resources.vocabulary import attribute_words

if TYPE_CHECKING:
    from setpoint.objects.patch import FieldConflict, PatchTarget
    from setpoint.objects.patch_record import ReleasedField

# So many fields are listed in a message.
_MOST_FIELDS: Final = 20
_LONGEST_VALUE: Final = 80


def patch_words(term: MessageTerm) -> str:
    """A term of a message in the words of a patch."""
    return attribute_words(term).replace("the manifest", "the patch")


def patch_diagnostic(fault: SetpointError, path: AttributePath) -> Diagnostic:
    """The diagnostic of an error of the engine."""
    if isinstance(fault, HeldByOthers) and fault.held:
        return held_error([(field.removeprefix("."), manager) for field, manager in fault.held], path)
    (found,) = diagnostics_for(fault, patch_words)
    return error(found.summary, found.detail, path)


def held_error(held: Sequence[tuple[str, str]], path: AttributePath) -> Diagnostic:
    """The error for fields that other field managers apply."""
    fields = "; ".join(f"{field} is applied by {manager}" for field, manager in held[:_MOST_FIELDS])
    return error(
        "Another field manager applies the field",
        f"{fields}. Change it there, leave it out of the patch, or set force_conflicts = true to take it over: "
        "the next apply of that manager then meets a conflict.",
        path,
    )


def patched_twice_error(fields: Iterable[str], other: str, path: AttributePath) -> Diagnostic:
    """The error for fields that another patch owns, or is about to own."""
    names = ", ".join(list(fields)[:_MOST_FIELDS])
    return error(
        "The field is patched already",
        f"{names}: {other} has it. Two patches of one field would overwrite each other, and what it was before is "
        "known to the first alone: keep it in one of them.",
        path,
    )


def conflict_errors(conflicts: "Sequence[FieldConflict]", config: AttributeValues) -> list[Diagnostic]:
    """The errors for the fields of a patch that other field managers hold."""
    path, found = (patch_attribute(config),), []
    patches = [one for one in conflicts if one.is_patch]
    for id_ in dict.fromkeys(one.patch_id for one in patches):
        names = [str(one.path) for one in patches if one.patch_id == id_]
        advice = "" if config.get("force_conflicts") is True else _ORPHANED
        twice = patched_twice_error(names, f"the setpoint_patch with the id {id_}", path)
        found.append(error(twice.summary, f"{twice.detail}{advice}", path))
    held = [(str(one.path), one.manager) for one in conflicts if not one.is_patch]
    return [*found, *([held_error(held, path)] if held else [])]


_ORPHANED: Final = (
    " If no state has that one any more, set force_conflicts = true: its values then count as those before."
)


def kept_by_object_error(live: Json, target: "PatchTarget") -> Diagnostic:
    """The error for an object that a `setpoint_object` manages."""
    return error(
        "The object is kept by a setpoint_object",
        f"{target.title} is kept as {annotated_id(live)}, in this state or another one: change these fields in its "
        "manifest, or list them in its ignore_fields and leave them to other tools. If no state has it any more, "
        f"remove its annotation: kubectl annotate {target.kind.lower()} {target.name} {ID_ANNOTATION}-.",
        ("target",),
    )


def missing_target_error(target: "PatchTarget") -> Diagnostic:
    """The error for a target that does not exist."""
    return error(
        "There is no such target",
        f"There is no {target.title} ({target.api_version}) in that cluster, and a patch makes none: correct the name "
        "or the namespace. If this apply makes it, or a controller does, write the dependency and set "
        'target_timeout = "5m": then it is waited for.',
        ("target",),
    )


def lost_target_warning(target: "PatchTarget", *, is_new: bool) -> Diagnostic:
    """The warning for a target that another writer deleted since, or deleted and made again."""
    if is_new:
        return warning(
            "The target was made anew",
            f"{target.title} was deleted and made again by another writer. What it was before the patch is no longer "
            "of use: the patch leaves the state, and is planned anew for the object that there is now.",
        )
    return warning(
        "The target was deleted", f"{target.title} was deleted by another writer: its patch leaves the state."
    )


def lost_target_error(target: "PatchTarget", *, is_new: bool) -> Diagnostic:
    """The error for the same in a plan that has not read the object."""
    found = lost_target_warning(target, is_new=is_new)
    return error(found.summary, f"{found.detail} Plan again, with a refresh.", ("target",))


def release_warning(
    values: AttributeValues, target: "PatchTarget", fields: "Sequence[ReleasedField]"
) -> Diagnostic | None:
    """The warning for fields that a patch gives up: which go back to which value, and which stay."""
    if not fields:
        return None
    if not is_restored(values):
        names = "\n".join(f"  {one.path}" for one in fields[:_MOST_FIELDS])
        return warning("Patched fields stay as they are", f'on_destroy = "leave", {target.title}:\n{names}')
    back = [
        f"  {one.path}: {_change(one, target.api_version)}"
        for one in fields
        # A field that was the same before, such as the key of an element, changes in its field manager alone.
        if not one.kept_because and not _is_same(one)
    ]
    kept = [f"  {one.path}: {one.kept_because}" for one in fields if one.kept_because]
    parts = [f"{target.title} goes back to what it was before the patch:", *_cut(back)] if back else []
    parts += ["These fields stay as they are:", *_cut(kept)] if kept else []
    return warning("Patched fields go back", "\n".join(parts)) if parts else None


def _cut(lines: list[str]) -> list[str]:
    return [*lines[:_MOST_FIELDS], *([f"  and {len(lines) - _MOST_FIELDS} more"] if len(lines) > _MOST_FIELDS else [])]


def _change(one: "ReleasedField", api_version: str) -> str:
    return f"{_shown(one.path, one.now, api_version)} -> {_shown(one.path, one.before, api_version)}"


def _is_same(one: "ReleasedField") -> bool:
    if isinstance(one.now, Missing) or isinstance(one.before, Missing):
        return one.now is one.before
    return same(one.now, one.before)


def _shown(path: Path, value: Json | Missing, api_version: str) -> str:
    """A value, where no secret stands."""
    if isinstance(value, Missing):
        return "(none)"
    text = value if isinstance(value, str) else canonical(value).decode()
    if not is_shown(path, text, api_version):
        return "(hidden)"
    text = f'"{text}"' if isinstance(value, str) else text
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
