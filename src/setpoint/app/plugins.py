"""Plug-ins: kinds and owners that other distributions offer by entry points, found by name and loaded when asked for.

An entry point of the group `setpoint.kinds` has the name `KIND.VERSION.GROUP`, as kubectl writes it, followed by
`/owner` for an owner. It leads to a function, or class, that takes a KindContext.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from os import scandir
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from setpoint import __version__
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.deferred_mapping import DeferredMapping
from setpoint.engine.kind import AnyKind, ResourceType
from setpoint.engine.owner import Owner
from setpoint.errors import PluginBroken

if TYPE_CHECKING:
    from setpoint.kind.kind_context import KindContext

GROUP: Final = "setpoint.kinds"
_OWNER: Final = "/owner"
_NAME: Final = re.compile(
    r"(?P<kind>[A-Z][A-Za-z0-9]*)\.(?P<version>v[0-9]+(?:(?:alpha|beta)[0-9]+)?)"
    rf"\.(?P<group>[a-z0-9][a-z0-9.-]*[a-z0-9])(?P<owner>{_OWNER})?"
)
_FOLDER: Final = re.compile(r"(?P<name>.+?)(?:-(?P<version>[^-]+?))?(?:-py[0-9.]+)?\.(?:dist|egg)-info")
_REQUIREMENT: Final = re.compile(r"setpoint(?:\[[^\]]*\])?\s*\(?(?P<specifiers>[^;()]*)\)?", re.IGNORECASE)
_SPECIFIER: Final = re.compile(r"(?P<operator>~=|==|!=|<=|>=|<|>)\s*(?P<release>[0-9]+(?:\.[0-9]+)*)(?P<any>\.\*)?")
# What a kind has to have, beside what every resource type has: see Kind.
_TYPE_MEMBERS: Final = (
    *("group", "version", "name", "revision", "annotations", "tree_type", "definition", "check", "dependencies"),
)
_KIND_MEMBERS: Final = (
    *("reconciliation", "live_type", "locate", "declare", "view", "effective", "abandons", "sending"),
    *("observe", "create", "update", "delete", "poll"),
)


class Distribution(NamedTuple):
    """An installed distribution, as its metadata folder names it."""

    name: str
    version: str
    folder: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class PluginKind:
    """A kind or owner that a distribution offers: known by name, not loaded."""

    name: GroupKind
    version: str
    is_owner: bool
    distribution: Distribution
    # Where its factory is: `module:attribute`.
    target: str

    def __str__(self) -> str:
        kind = f"{self.name[1]}.{self.version}.{self.name[0]}"
        return f"the entry point {kind}{_OWNER if self.is_owner else ''} = {self.target} of {self.distribution}"


@dataclass(frozen=True, slots=True)
class RefusedPlugin:
    """An entry point that is not used at all, and why."""

    distribution: Distribution
    entry: str
    why: str


@dataclass(frozen=True, slots=True)
class Plugins:
    """What is installed beside our own kinds: usable by name; `clashes` are names that more than one offers."""

    offered: Mapping[GroupKind, PluginKind]
    clashes: Mapping[GroupKind, tuple[PluginKind, ...]]
    refused: tuple[RefusedPlugin, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.offered or self.clashes)

    def kinds(self, context: "Callable[[], KindContext]") -> Mapping[GroupKind, AnyKind]:
        """Every kind, made with the context when it is first asked for; a broken one fails whatever is done with it."""
        made = {name: partial(_load_kind, one, context) for name, one in self.offered.items() if not one.is_owner}
        return DeferredMapping(made | {name: partial(_clashing, name, some) for name, some in self.clashes.items()})

    def owners(self, context: "Callable[[], KindContext]") -> Mapping[GroupKind, Owner]:
        """Every owner, in the same way."""
        return DeferredMapping(
            {name: partial(_load_owner, one, context) for name, one in self.offered.items() if one.is_owner}
        )


NO_PLUGINS: Final = Plugins({}, {})


# --- What is installed ------------------------------------------------------------------------------------------------


def installed_plugins(taken: Collection[GroupKind], paths: Sequence[str] | None = None) -> Plugins:
    """The plug-ins on these paths, without those that offer a kind of a `taken` name. No module is imported.

    The metadata folders are read directly: importlib.metadata alone takes longer to import than most commands run.
    """
    found: dict[str, list[PluginKind]] = defaultdict(list)
    refused: list[RefusedPlugin] = []
    ours = {kind.lower() for _, kind in taken}
    for distribution, name, target in _entry_points(sys.path if paths is None else paths):
        one = _parse_entry(distribution, name, target)
        if isinstance(one, RefusedPlugin):
            refused.append(one)
        elif one.name[1].lower() in ours:
            refused.append(RefusedPlugin(distribution, name, f"setpoint itself has a kind {one.name[1]}, which stays"))
        else:
            found[one.name[1].lower()].append(one)
    offered = {some[0].name: some[0] for some in found.values() if len(some) == 1}
    clashes = {one.name: tuple(some) for some in found.values() if len(some) > 1 for one in some}
    return Plugins(offered, clashes, tuple(refused))


def _entry_points(paths: Sequence[str]) -> Iterator[tuple[Distribution, str, str]]:
    """Every entry point of our group; of a distribution that is there twice, the first counts, as for imports."""
    seen: set[str] = set()
    for path in dict.fromkeys(paths):
        for distribution, text in _texts_in(path or "."):
            name = re.sub(r"[-_.]+", "-", distribution.name).lower()
            if name not in seen:
                seen.add(name)
                yield from ((distribution, *pair) for pair in _pairs(text))


def _texts_in(path: str) -> Iterator[tuple[Distribution, str]]:
    """The distributions in a folder that mention our group, in order, with their entry points."""
    try:
        with scandir(path) as entries:
            folders = sorted(one.path for one in entries if one.name.endswith(("-info",)))
    except OSError:
        # A folder of the path need not exist; nor be one: it may be an archive.
        return
    for folder in folders:
        parts = _FOLDER.fullmatch(folder.rpartition("/")[2])
        text = _read(f"{folder}/entry_points.txt") if parts else ""
        if parts and GROUP in text:
            yield Distribution(parts["name"], parts["version"] or "", folder), text


def _read(file: str) -> str:
    from pathlib import Path

    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[] ")
        elif section == GROUP and line and not line.startswith(("#", ";")):
            name, _, target = line.partition("=")
            yield name.strip(), target.strip()


def _parse_entry(distribution: Distribution, name: str, target: str) -> PluginKind | RefusedPlugin:
    parts = _NAME.fullmatch(name)
    if parts is None:
        why = "its name is not KIND.VERSION.GROUP, such as Widget.v1.shop.example.com, with /owner for an owner"
        return RefusedPlugin(distribution, name, why)
    module, colon, attribute = target.partition(":")
    if not (module and colon and attribute):
        return RefusedPlugin(distribution, name, f"it leads to {target!r}: write module:attribute")
    return PluginKind((parts["group"], parts["kind"]), parts["version"], bool(parts["owner"]), distribution, target)


# --- Loading ----------------------------------------------------------------------------------------------------------


def _load_kind(plugin: PluginKind, context: "Callable[[], KindContext]") -> AnyKind:
    try:
        found: AnyKind = _load(plugin, context, _KIND_MEMBERS)
    except PluginBroken as error:
        return _broken_kind(plugin, error)
    return found


def _load_owner(plugin: PluginKind, context: "Callable[[], KindContext]") -> Owner:
    owner_members = tuple(name for name in dir(Owner) if name in ("sources", "generate", "completed", "status_of"))
    try:
        found: Owner = _load(plugin, context, (*owner_members, "makes", "reads", "deleted_first"))
    except PluginBroken as error:
        from setpoint.app.broken_types import BrokenOwner

        return BrokenOwner(*plugin.name, plugin.version, error)
    return found


def _clashing(name: GroupKind, some: Sequence[PluginKind]) -> AnyKind:
    return _broken_kind(next(one for one in some if one.name == name), clash_error(some))


def clash_error(some: Sequence[PluginKind]) -> PluginBroken:
    """The error for kinds of one name that several distributions offer."""
    names = " and ".join(map(str, some))
    return PluginBroken(
        f"more than one plug-in offers a kind {some[0].name[1]}, so that none is used: {names}; uninstall one of them"
    )


def _broken_kind(plugin: PluginKind, error: PluginBroken) -> AnyKind:
    from setpoint.app.broken_types import BrokenKind

    return BrokenKind(*plugin.name, plugin.version, error)


def _load(plugin: PluginKind, context: "Callable[[], KindContext]", members: Sequence[str]) -> Any:  # noqa: ANN401 - checked
    """The kind or owner; PluginBroken for anything that is wrong with it."""
    _require_fitting_version(plugin)
    module, _, attribute = plugin.target.partition(":")
    try:
        factory = import_module(module)
        for name in attribute.split("."):
            factory = getattr(factory, name)
        made = factory(context())  # type: ignore[operator] # what is no function raises TypeError
    except Exception as error:
        raise PluginBroken(f"{plugin} cannot be loaded: {type(error).__name__}: {error}") from error
    missing = [name for name in (*_TYPE_MEMBERS, *members) if not hasattr(made, name)]
    if missing:
        what = "no owner" if plugin.is_owner else "no kind"
        raise PluginBroken(f"{plugin} made a {type(made).__name__}, which is {what}: it lacks {', '.join(missing)}")
    _require_same_name(plugin, made)
    return made


def _require_same_name(plugin: PluginKind, made: ResourceType) -> None:
    if (made.group, made.name) != plugin.name or made.version != plugin.version:
        own = f"{made.name}.{made.version}.{made.group}"
        raise PluginBroken(f"{plugin} made the kind {own}: both names have to be the same")
    if not issubclass(made.tree_type, Struct):
        raise PluginBroken(f"{plugin} made a kind whose tree_type is no msgspec Struct")


# --- Which setpoint a plug-in is for ----------------------------------------------------------------------------------


def _require_fitting_version(plugin: PluginKind) -> None:
    """PluginBroken for a plug-in that requires another version of setpoint, whatever was installed with it."""
    for line in _read(f"{plugin.distribution.folder}/METADATA").split("\n\n")[0].splitlines():
        name, _, requirement = line.partition(":")
        wanted = _REQUIREMENT.fullmatch(requirement.strip().partition(";")[0].strip())
        if name == "Requires-Dist" and wanted and not fits(__version__, wanted["specifiers"]):
            raise PluginBroken(
                f"{plugin} requires setpoint {wanted['specifiers'].strip()}, and this is {__version__}: install a "
                "version of it that fits"
            )


def fits(version: str, specifiers: str) -> bool:
    """Whether a version is one that the specifiers of a requirement allow, by the numbers of its release."""
    own = _release(version)
    return all(_allows(own, one) for one in _SPECIFIER.finditer(specifiers))


def _allows(own: tuple[int, ...], specifier: re.Match[str]) -> bool:
    release = _release(specifier["release"])
    length = max(len(own), len(release))
    left, right = (one + (0,) * (length - len(one)) for one in (own, release))
    if specifier["any"]:
        left, right = left[: len(release)], release
    match specifier["operator"]:
        case "==":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case "~=":
            return left >= right and left[: len(release) - 1] == release[:-1]
        case _:
            return left >= right


def _release(version: str) -> tuple[int, ...]:
    found = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
