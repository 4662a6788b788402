"""The configuration of `setpoint_patch`: the target, the patch in its three forms, what is refused, what is hidden."""

import secrets
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from setpoint.core.values.durations import parse_duration
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.core.values.yaml_documents import read_documents
from setpoint.errors import ManifestInvalid
from setpoint.terraform.cty.json_trees import to_json_tree
from setpoint.terraform.cty.values import AttributeValues, CtyValue, Dynamic, is_known, nullify_unknown
from setpoint.terraform.framework.diagnostics import DiagnosticsError, error
from setpoint.terraform.framework.hidden_texts import NO_TEXTS, HiddenTexts
from setpoint.terraform.patches.patch_schema import FORMS, JSON_PATCH, LEAVE, MERGE_PATCH, PATCH, RESTORE
from setpoint.terraform.resources.object_config import ID_ANNOTATION
from setpoint.terraform.resources.schemas import FAIL, KEEP
from setpoint.terraform.resources.shown_values import UNKNOWN_VERSION, hidden_texts, texts_below, words_in

if TYPE_CHECKING:
    from setpoint.objects.patch import ObjectPatch, PatchTarget

_CHOICES: Final = {"on_timeout": (KEEP, FAIL), "on_destroy": (RESTORE, LEAVE)}
_SERVER_SET: Final = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"),
)
# Fields that name the object, and fields that only the cluster sets.
_IDENTITY: Final = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))
_REFUSED: Final[Mapping[tuple[str, ...], str]] = {
    **dict.fromkeys((*_IDENTITY, ("metadata", "generateName")), "it names the object: target does that"),
    **dict.fromkeys((("metadata", name) for name in _SERVER_SET), "only the cluster sets it"),
    ("status",): "only controllers set it",
    ("metadata", "annotations", ID_ANNOTATION): "it marks objects of setpoint_object",
}
_DIRECTIVES: Final = ("$patch", "$retainKeys", "$setElementOrder", "$deleteFromPrimitiveList")


def new_patch_id() -> str:
    """The ID of a new patch."""
    return secrets.token_hex(6)


def patch_attribute(values: AttributeValues) -> str:
    """The attribute that holds the patch."""
    return next((name for name in FORMS if values.get(name) is not None), PATCH)


def is_patch_known(values: AttributeValues) -> bool:
    """Whether target and patch have no unknown values."""
    return all(is_known(values.get(name)) for name in ("target", *FORMS))


def read_target(values: AttributeValues) -> "PatchTarget":
    """The target, which must be known."""
    from setpoint.objects.patch import PatchTarget

    names = values.get("target")
    texts = {name: one for name, one in names.items() if isinstance(one, str)} if isinstance(names, Mapping) else {}
    for name in ("api_version", "kind", "name"):
        if not texts.get(name, "").strip():
            raise DiagnosticsError(error("No target", f"target.{name} is empty: write it.", ("target",)))
    return PatchTarget(texts["api_version"], texts["kind"], texts["name"], texts.get("namespace", ""))


def read_patch(values: AttributeValues) -> "ObjectPatch":
    """The patch, which must be known; DiagnosticsError when it is invalid."""
    from setpoint.objects.json_patches import parse_json_patch
    from setpoint.objects.patch import ApplyPatch, JsonPatch, MergePatch

    form = patch_attribute(values)
    tree = _tree(values.get(form), form)
    if not tree:
        raise DiagnosticsError(error("An empty patch", f"{form} sets no field: write one, or leave it out.", (form,)))
    try:
        if form == JSON_PATCH:
            patch = JsonPatch(parse_json_patch(tree))
            _refuse_pointers(patch)
            return patch
        if not isinstance(tree, dict):
            raise ManifestInvalid("it is no map of fields: write data = {…} or spec = {…}")
        _refuse_fields(tree, form)
    except ManifestInvalid as fault:
        raise DiagnosticsError(error("No patch", f"{form}: {fault}.", (form,))) from fault
    return MergePatch(tree) if form == MERGE_PATCH else ApplyPatch(tree)


def same_patch(before: AttributeValues, after: AttributeValues) -> bool:
    """Whether two configurations have the same patch, however it is written."""
    form = patch_attribute(before)
    return form == patch_attribute(after) and read_patch(before) == read_patch(after)


def _tree(value: CtyValue, form: str) -> Json:
    plain = value.value if isinstance(value, Dynamic) else value
    if not isinstance(plain, str):
        tree = to_json_tree(value)
        # In Terraform null means not set; in a merge patch it removes.
        return _without_nulls(tree) if form == PATCH else tree
    try:
        documents = read_documents(plain, form)
    except ManifestInvalid as fault:
        raise DiagnosticsError(error("No YAML", str(fault), (form,))) from fault
    if len(documents) > 1:
        why = f"{form} has {len(documents)} documents: write one, and a resource for each."
        raise DiagnosticsError(error("Not one patch", why, (form,)))
    return documents[0].value if documents else None


def _without_nulls(tree: Json) -> Json:
    match tree:
        case dict():
            return {name: _without_nulls(one) for name, one in tree.items() if one is not None}
        case list():
            return [_without_nulls(one) for one in tree]
        case _:
            return tree


def _refuse_fields(tree: dict[str, Json], form: str) -> None:
    if not isinstance(tree.get("metadata", {}), dict):
        raise _refusal("metadata", "it is no map of fields")
    for steps, why in _REFUSED.items():
        if _has(tree, steps):
            raise _refusal(".".join(steps), why)
    for path, value in _members(tree, ""):
        name = path.rpartition(".")[2].partition("/")[0]
        if name in _DIRECTIVES:
            raise ManifestInvalid(f"{path} is a directive that server-side apply does not have; see merge_patch")
        if value is None and form == PATCH:
            raise ManifestInvalid(f"{path} is null, which removes nothing here: leave it out, or write a merge_patch")
        if path == "stringData" and form == MERGE_PATCH:
            raise _refusal(path, "it cannot be compared with what becomes of it; write data, in base64")


def _has(tree: Json, steps: tuple[str, ...]) -> bool:
    for step in steps:
        if not isinstance(tree, dict) or step not in tree:
            return False
        tree = tree[step]
    return True


def _members(tree: Json, at: str) -> Iterator[tuple[str, Json]]:
    """Every member of a tree at any depth, with its path for messages."""
    below = tree.items() if isinstance(tree, dict) else ()
    for name, value in below:
        yield f"{at}.{name}".removeprefix("."), value
        yield from _members(value, f"{at}.{name}".removeprefix("."))
    for position, value in enumerate(tree) if isinstance(tree, list) else ():
        yield from _members(value, f"{at}[{position}]")


def _refuse_pointers(patch: "ObjectPatch") -> None:
    from setpoint.objects.patch import JsonPatch

    for one in patch.operations if isinstance(patch, JsonPatch) else ():
        written = [] if one.op == "test" else [one.pointer]
        written += [one.source] if one.op == "move" and one.source is not None else []
        for pointer in written:
            if why := _refused_pointer(pointer):
                raise _refusal(str(one), why)


def _refused_pointer(pointer: tuple[str, ...]) -> str:
    if pointer == ("metadata",):
        return "it holds fields that name the object"
    if pointer[0] == "stringData":
        return "it cannot be compared with what becomes of it; write data, in base64"
    return next((why for steps, why in _REFUSED.items() if pointer[: len(steps)] == steps), "")


def _refusal(where: str, why: str) -> ManifestInvalid:
    return ManifestInvalid(f"{where} is no field of a patch: {why}; leave it out")


# --- Everything else -------------------------------------------------------------------------------------------------


def validate_forms(config: AttributeValues) -> None:
    """Raises DiagnosticsError unless exactly one form of a patch is written."""
    given = [name for name in FORMS if config.get(name) is not None]
    if len(given) != 1:
        why = f"{', '.join(FORMS)} are three forms of one thing: write one of them, not {len(given) or 'none'}."
        raise DiagnosticsError(error("Not one patch", why, (given[-1],) if given else ()))


def validate_choices(config: AttributeValues) -> None:
    """Raises DiagnosticsError for words and durations that are none."""
    for name, words in _CHOICES.items():
        if config.get(name) not in (None, *words) and is_known(config.get(name)):
            raise DiagnosticsError(error("No such word", f"{name} is {' or '.join(words)}.", (name,)))
    timeout = config.get("target_timeout")
    if isinstance(timeout, str):
        try:
            parse_duration(timeout)
        except ManifestInvalid as fault:
            raise DiagnosticsError(error("No duration", f"target_timeout: {fault}.", ("target_timeout",))) from fault


def is_restored(values: AttributeValues) -> bool:
    """Whether fields that are no longer patched go back to the values before."""
    return values.get("on_destroy") != LEAVE


def target_seconds(values: AttributeValues) -> float | None:
    """How long a target is waited for; None when it has to exist."""
    timeout = values.get("target_timeout")
    return parse_duration(timeout) if isinstance(timeout, str) else None


# --- Values that may be secret ---------------------------------------------------------------------------------------


def patch_texts(values: AttributeValues) -> HiddenTexts:
    """The values of a patch, and those before it, that no message may repeat. Operations and paths are shown."""
    known = nullify_unknown(values) or {}
    target = known.get("target")
    found = target.get("api_version") if isinstance(target, Mapping) else None
    api_version = found if isinstance(found, str) else UNKNOWN_VERSION
    texts = hidden_texts(known)
    for form in FORMS:
        texts |= _texts_of(known.get(form), form, api_version)
    before = known.get("before")
    for path, text in before.items() if isinstance(before, Mapping) else ():
        texts |= _texts_before(path, text, api_version)
    return texts


def _texts_of(value: CtyValue, form: str, api_version: str) -> HiddenTexts:
    try:
        tree = _tree(value, form)
    except (DiagnosticsError, RecursionError):
        # Text that is no YAML.
        return words_in(str(value.value if isinstance(value, Dynamic) else value))
    if form != JSON_PATCH or not isinstance(tree, list):
        return texts_below(tree, Path(), api_version)
    from setpoint.objects.json_patches import pointer_steps

    texts = NO_TEXTS
    for one in tree:
        operation = one if isinstance(one, dict) else {"value": one}
        pointer = str(operation.get("path", ""))
        steps = [int(step) if step.isdecimal() else step for step in pointer_steps(pointer)]
        rest = frozenset(str(operation.get(name)) for name in ("op", "path", "from") if operation.get(name))
        texts |= texts_below(operation.get("value"), Path(tuple(steps)), api_version) | HiddenTexts(shown=rest)
    return texts


def _texts_before(path: str, text: CtyValue, api_version: str) -> HiddenTexts:
    if not isinstance(text, str):
        return NO_TEXTS
    try:
        return texts_below(msgspec.json.decode(text), Path.parse(path), api_version)
    except (msgspec.DecodeError, ManifestInvalid):
        return HiddenTexts(frozenset({text}))
