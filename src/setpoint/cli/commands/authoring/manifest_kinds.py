"""The kinds that manifests use."""

from collections.abc import Collection, Iterator, Sequence

from setpoint.core.unstructured import GroupKind
from setpoint.errors import UserError
from setpoint.library.manifests.reading import load_manifests


def kinds_in(paths: Sequence[str], known: Collection[GroupKind]) -> Iterator[GroupKind]:
    """The kinds of ours that the manifests use; UserError when none of them is."""
    if not paths:
        return
    found = {one.ref.group_kind for one in load_manifests(paths)}.intersection(known)
    if not found:
        raise UserError(
            f"{', '.join(paths)}: no manifest is of a kind that has a definition here: see `setpoint kinds`"
        )
    yield from found
