"""Notes of what plans have shown: Terraform plans a second time when it applies, and both plans have to agree.

That second plan is made in another process, and gets nothing of the first one. What is noted on disk are digests:
enough to tell that the plan no longer holds. The notes are in the data directory of Terraform, `.terraform`, which goes
with a saved plan to the machine where it is applied. If a note is lost, Terraform itself compares the two.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import Json
from setpoint.terraform.cty.json_trees import to_json_tree
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, CtyValue, UnknownValue, is_known
from setpoint.terraform.framework.diagnostics import Diagnostic, error
from setpoint.terraform.framework.provider import PlanRequest
from setpoint.terraform.rpc.tls_proxy import cache_directory

# Enough to tell two values apart.
_DIGITS: Final = 16
_MOST_PARTS: Final = 5


class PlanNote(msgspec.Struct, frozen=True):
    """What one plan has shown: whether it replaces, and a digest of each known part."""

    # A digest of the manifest; empty when it was not known.
    manifest: str
    is_replacement: bool
    parts: dict[str, str]

    def is_of(self, config: AttributeValues, sources: tuple[str, ...]) -> bool:
        """Whether it may be of this configuration: the same of the attributes `sources` is null."""
        return all((self.parts.get(name) == _digest(None)) == (config.get(name) is None) for name in sources)

    def has_known(self, name: str) -> bool:
        """Whether the map of this name was known."""
        return f"{name}{_KEYS}" in self.parts

    def differing(self, state: AttributeValues) -> list[str]:
        """The parts that were known, and that are unknown in `state`, or something else."""
        now = known_parts(state)
        changed = [part for part, one in self.parts.items() if now.get(part) != one]
        others = [part.removesuffix(_KEYS) for part in changed if part.endswith(_KEYS)]
        added = [part for part in now if part not in self.parts and part.partition("[")[0] in others]
        named = [*(part for part in changed if not part.endswith(_KEYS)), *added]
        return named or others

    def restored(self, name: str, state: AttributeValues, *others: CtyValue) -> CtyValue:
        """The value of an attribute that was noted: the one in `state`, or else one of `others`."""
        wanted = self.parts.get(name)
        found = [one for one in (state[name], *others) if wanted is not None and _digest(one) == wanted]
        return found[0] if found else state[name]


_KEYS: Final = ".keys"


def known_parts(state: AttributeValues) -> dict[str, str]:
    """A digest of each known part of some attributes, by its path."""
    return {path: one for name, value in state.items() for path, one in _parts(name, value)}


def _parts(path: str, value: CtyValue) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        yield f"{path}{_KEYS}", _digest(tuple(sorted(value)))
        for key, one in value.items():
            yield from _parts(f'{path}["{key}"]', one)
    elif not isinstance(value, UnknownValue) and is_known(value):
        yield path, _digest(value)


def _digest(value: CtyValue) -> str:
    return digest([to_json_tree(value)])[:_DIGITS] if is_known(value) else ""


def held_state(
    planned: AttributeValues, note: PlanNote, request: PlanRequest, sources: tuple[str, ...], fields: CtyValue
) -> dict[str, CtyValue]:
    """The planned state with what the noted plan had where both are right.

    `sources` are the attributes of which one holds what is declared; `fields` are those that a dry run has shown.
    """
    prior, proposed, state = request.prior or {}, request.proposed, dict(planned)
    for name in ("status", *sources):
        state[name] = note.restored(name, planned, prior.get(name), proposed[name])
    for name in sources:
        # What was unknown in part is planned as it is written: what means the same may be written differently.
        state[name] = state[name] if name in note.parts else proposed[name]
    if note.has_known("projection") and state["projection"] is UNKNOWN:
        # By now there may be changes beside these fields: they do not make them unknown.
        state["projection"] = fields
    return state


def manifest_digest(tree: Json) -> str:
    """The digest of a manifest in a note; empty when it is not known."""
    return "" if tree is None else digest([tree])[:_DIGITS]


class PlanNotes:
    """The notes in `directory` of the plans that were made in a working directory of Terraform."""

    def __init__(self, directory: Path | None, working_directory: str) -> None:
        self._directory = directory
        self._working_directory = working_directory

    @staticmethod
    def of_terraform(environment: Mapping[str, str], working_directory: Path) -> "PlanNotes":
        """Those of a working directory of Terraform: in its data directory, or else in the cache of the user."""
        data = working_directory / (environment.get("TF_DATA_DIR") or ".terraform")
        if data.is_dir() and os.access(data, os.W_OK):
            # Wherever the directory is copied to.
            return PlanNotes(data / "setpoint", "")
        return PlanNotes(cache_directory(environment), str(working_directory))

    def write(self, key: str, note: PlanNote) -> None:
        """Notes what a plan has shown of the object of `key`."""
        if (file := self._file(key)) is not None:
            # Without a home directory, or with a read-only one, there are no notes.
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                file.write_bytes(msgspec.json.encode(note))

    def read(self, key: str, manifest: str) -> PlanNote | None:
        """What the last plan has shown of it; None when that was another manifest, or there is no note."""
        if (file := self._file(key)) is None:
            return None
        try:
            note = msgspec.json.decode(file.read_bytes(), type=PlanNote)
        except (OSError, msgspec.DecodeError):
            return None
        return note if note.manifest in ("", manifest) else None

    def forget(self, key: str) -> None:
        """That plan is applied, or no longer holds."""
        if (file := self._file(key)) is not None:
            with suppress(OSError):
                file.unlink(missing_ok=True)

    def _file(self, key: str) -> Path | None:
        name = digest([self._working_directory, key])
        return None if self._directory is None else self._directory / "planned" / name


def outdated_error(differing: list[str], reason: str = "") -> Diagnostic:
    """The diagnostic of a plan that cannot be applied as it was made."""
    shown = ", ".join(differing[:_MOST_PARTS])
    more = f" and {len(differing) - _MOST_PARTS} more" if len(differing) > _MOST_PARTS else ""
    why = reason or "The live object, its kind, or what admission makes of it, has changed since."
    return error(
        "The plan no longer holds",
        f"It would become something else than was planned, in {shown}{more}. {why} Nothing was changed. Plan again: "
        "the new plan shows what will happen now.",
    )


def other_action_error(attribute: str) -> Diagnostic:
    """The diagnostic of an update whose object would have to be replaced by now."""
    return error(
        "The plan no longer holds",
        "It was planned to be changed in place, and would have to be replaced by now: a value that was not known at "
        "plan, or a change of the live object, makes it another object. Nothing was changed. Plan again: the new plan "
        "shows the replacement.",
        (attribute,),
    )
