"""The functions `manifests`, `manifests_in`, `manifest_decode` and `manifest_encode`.

The YAML reader is imported on use: most processes of a Terraform command only serve the signatures.
"""

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from setpoint.errors import ManifestInvalid
from setpoint.terraform.cty.json_trees import from_untyped, to_json_tree, without_nulls
from setpoint.terraform.cty.types import DYNAMIC, STRING, MapType, ObjectType
from setpoint.terraform.cty.values import CtyValue
from setpoint.terraform.framework.call import CallContext
from setpoint.terraform.framework.provider import FunctionFailed, FunctionParameter, ProviderFunction

if TYPE_CHECKING:
    from setpoint.terraform.functions.manifest_set import ManifestText

T = TypeVar("T")

_TEXTS: Final = MapType(STRING)
_STAGES: Final = ObjectType(dict.fromkeys(("all", "crds", "namespaces", "cluster_scoped", "namespaced"), _TEXTS))
_SUFFIXES: Final = frozenset((".yaml", ".yml", ".json"))
_GLOB: Final = frozenset("*?[")
_LARGEST: Final = 16 * 2**20


class Manifests(ProviderFunction):
    """Splits YAML texts into objects."""

    parameters = (FunctionParameter(name="text", type=STRING, description="YAML with any number of documents."),)
    variadic = FunctionParameter(name="more", type=STRING, description="More texts.")
    returns = _STAGES
    summary = (
        "Splits YAML into its objects, for `for_each`: the YAML of each by `Kind/namespace/name`, in the maps `crds`, "
        "`namespaces`, `cluster_scoped` and `namespaced`, which are applied in this order, and in `all`."
    )

    async def call(self, arguments: Sequence[CtyValue], call: CallContext) -> CtyValue:
        """See ProviderFunction."""
        from setpoint.terraform.functions.manifest_set import ManifestText

        names = ["text"] if len(arguments) == 1 else [f"text {number}" for number in range(1, len(arguments) + 1)]
        return _split([ManifestText(str(text), name) for text, name in zip(arguments, names, strict=True)])


class ManifestsIn(ProviderFunction):
    """Splits the YAML of files into objects."""

    parameters = (
        FunctionParameter(
            name="path",
            type=STRING,
            description="A file, a pattern such as `manifests/**/*.yaml`, or a folder: all files in it, and in folders "
            "below it that are not hidden, that end in .yaml, .yml or .json.",
        ),
    )
    variadic = FunctionParameter(name="more", type=STRING, description="More paths.")
    returns = _STAGES
    summary = "The same as `manifests`, of the texts in files."

    async def call(self, arguments: Sequence[CtyValue], call: CallContext) -> CtyValue:
        """See ProviderFunction."""
        files = (file for position, path in enumerate(arguments) for file in _files(str(path), position))
        return _split([_read(file) for file in dict.fromkeys(files)])


class ManifestDecode(ProviderFunction):
    """Reads the YAML of one object."""

    parameters = (FunctionParameter(name="text", type=STRING, description="The YAML of one object."),)
    variadic = None
    returns = DYNAMIC
    summary = "The object in a YAML text, as a value, read as Kubernetes reads it: `yes` is true, and `010` is eight."

    async def call(self, arguments: Sequence[CtyValue], call: CallContext) -> CtyValue:
        """See ProviderFunction."""
        from setpoint.core.values.yaml_documents import read_documents

        documents = _failing(lambda: read_documents(str(arguments[0]), "text"), 0)
        if len(documents) != 1:
            raise FunctionFailed(f"The text has {len(documents)} documents: give one, or split it by manifests().", 0)
        return from_untyped(documents[0].value, DYNAMIC)


class ManifestEncode(ProviderFunction):
    """Writes the YAML of one object, or of several."""

    parameters = (
        FunctionParameter(name="manifest", type=DYNAMIC, description="An object, or a list of objects, as a value."),
    )
    variadic = None
    returns = STRING
    summary = "The YAML of an object, or of several as documents of one text; members that are null are left out."

    async def call(self, arguments: Sequence[CtyValue], call: CallContext) -> CtyValue:
        """See ProviderFunction."""
        from setpoint.core.values.yaml_documents import write_document

        tree = without_nulls(to_json_tree(arguments[0]))
        trees = tree if isinstance(tree, list) else [tree]
        if not all(isinstance(one, Mapping) for one in trees):
            raise FunctionFailed("A manifest is an object with apiVersion, kind and metadata: give one.", 0)
        return "---\n".join(write_document(one) for one in trees)


def _split(texts: "list[ManifestText]") -> CtyValue:
    from setpoint.terraform.functions.manifest_set import split_manifests

    stages: CtyValue = _failing(lambda: split_manifests(texts))
    return stages


def _failing(work: Callable[[], T], argument: int | None = None) -> T:
    try:
        return work()
    except ManifestInvalid as fault:
        raise FunctionFailed(str(fault), argument) from fault


def _files(path: str, position: int) -> list[Path]:
    """The files that a path, a pattern or a folder names, in order; a path that does not exist names none."""
    place = Path(path).expanduser()
    if place.is_dir():
        found = sorted(_manifest_files(place))
        # Whatever writes to a pipe might never do so.
        if wrong := next((file for file in found if file.exists() and not file.is_file()), None):
            raise FunctionFailed(f"{wrong}: this is no file: remove it.", position)
    elif place.exists() or not _GLOB.intersection(path):
        found = [place]
    else:
        found = sorted(file for file in map(Path, glob.glob(str(place), recursive=True)) if file.is_file())
    if not found:
        raise FunctionFailed(
            f"{path}: no manifest is there: name a file, a pattern or a folder of .yaml files.", position
        )
    return found


def _manifest_files(folder: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = (name for name in folders if not name.startswith("."))
        yield from (Path(here) / name for name in names if Path(name).suffix in _SUFFIXES)


def _read(file: Path) -> "ManifestText":
    from setpoint.terraform.functions.manifest_set import ManifestText

    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise FunctionFailed(f"{file}: {error.strerror}: name a file, a pattern or a folder.") from error
    except UnicodeDecodeError as error:
        raise FunctionFailed(f"{file}: this is no UTF-8 text: write it as one.") from error
    if len(data) > _LARGEST:
        raise FunctionFailed(f"{file}: larger than {_LARGEST // 2**20} MiB: split it.")
    return ManifestText(text, str(file))
