"""Resources that a command names by kind, labels or fields: resolved to those that are declared."""

from typing import TYPE_CHECKING

from setpoint.cli.request import CommandRequest
from setpoint.errors import ManifestInvalid, UserError
from setpoint.library.targets import Selection, is_kind_word

if TYPE_CHECKING:
    from setpoint.library.session import Session

_WITH_FILES = "-l and --field-selector select what is declared: name no file beside them"
_NONE = "nothing that is declared here is selected: `setpoint get -A` lists what is"


async def declared_selection(request: CommandRequest, session: "Session") -> Selection:
    """The resources that are selected. ManifestInvalid where there is none: no name would mean everything."""
    if request.files:
        raise UserError(_WITH_FILES)
    await _require_kinds(request, session)
    listing = await session.list(*request.targets, all_namespaces=request.namespace is None)
    async with session.reading() as engine:
        types = engine.resource_types
    found = [one.resource for one in listing if one.ref.group_kind in types]
    if request.filter is not None:
        request.filter.require_known(found, types)
    refs = tuple(one.ref for one in found if request.filter is None or request.filter.matches(one))
    if not refs and not request.ignore_not_found:
        raise ManifestInvalid(_NONE)
    return Selection(None, refs, request.namespace)


async def _require_kinds(request: CommandRequest, session: "Session") -> None:
    """ManifestInvalid for a word alone that is no kind: a name without one is meant, or a file that is not there."""
    from setpoint.app.kinds import named_kind
    from setpoint.library.targets import ref_of_target

    async with session.reading() as engine:
        for word in request.targets:
            if is_kind_word(word) and named_kind(word, engine.resource_types) is None:
                ref_of_target(word, request.namespace, engine)
