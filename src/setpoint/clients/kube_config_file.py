"""Kubeconfig files: what stands in each, and what several of them come to together."""

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from setpoint.core.paths import Path as FieldPath
from setpoint.core.values import Json
from setpoint.core.yaml_documents import Document, read_documents
from setpoint.errors import UserError


class ClusterEntry(Struct, frozen=True, rename="kebab"):
    """A cluster."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: tuple["Extension", ...] = ()

    def __repr__(self) -> str:
        return f"ClusterEntry({self.server!r})"


class Extension(Struct, frozen=True):
    """What another program put there."""

    name: str = ""
    extension: Any = None


class ExecVariable(Struct, frozen=True):
    """A variable for a command that logs in."""

    name: str = ""
    value: str = ""

    def __repr__(self) -> str:
        return f"ExecVariable({self.name!r})"


class ExecEntry(Struct, frozen=True, rename="camel"):
    """A command that logs in."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[ExecVariable, ...] = ()
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""

    def __repr__(self) -> str:
        return f"ExecEntry({self.command!r})"


class AuthProvider(Struct, frozen=True):
    """How kubectl used to log in."""

    name: str = ""


class UserEntry(Struct, frozen=True, rename="kebab"):
    """A user."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    as_user: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, tuple[str, ...]] = {}
    username: str = ""
    password: str = ""
    auth_provider: AuthProvider | None = None
    exec: ExecEntry | None = None

    def __repr__(self) -> str:
        return "UserEntry()"


class ContextEntry(Struct, frozen=True):
    """Who we are, and where."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(Struct, frozen=True):
    name: str
    cluster: ClusterEntry = ClusterEntry()


class _NamedUser(Struct, frozen=True):
    name: str
    user: UserEntry = UserEntry()


class _NamedContext(Struct, frozen=True):
    name: str
    context: ContextEntry = ContextEntry()


class _Config(Struct, frozen=True, rename="kebab"):
    kind: str = "Config"
    current_context: str = ""
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()


T = TypeVar("T")
_EMPTY: Final = _Config()


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """What stands under a name, and in which file."""

    value: T
    file: Path

    def path(self, text: str) -> Path:
        """A path as this file means it."""
        return self.file.parent / text


@dataclass(slots=True)
class KubeConfig:
    """All files together: what the first of them says about a name counts, and nothing that a later one adds."""

    files: list[Path] = field(default_factory=list)
    current_context: str = ""
    clusters: dict[str, Entry[ClusterEntry]] = field(default_factory=dict)
    users: dict[str, Entry[UserEntry]] = field(default_factory=dict)
    contexts: dict[str, Entry[ContextEntry]] = field(default_factory=dict)

    def __str__(self) -> str:
        return ", ".join(map(str, self.files))


def read_all(files: Iterable[Path]) -> KubeConfig:
    """What those of `files` that are there come to; UserError says which of them makes no sense, and where."""
    merged = KubeConfig()
    for file in dict.fromkeys(files):
        text = _text_of(file)
        if text is not None:
            _add(merged, file.absolute(), read_one(text, file))
            merged.files.append(file)
    return merged


def read_text(text: str, source: str) -> KubeConfig:
    """The same for the text of one; `source` is how it is called."""
    merged = KubeConfig()
    _add(merged, Path(source), read_one(text, Path(source)))
    merged.files.append(Path(source))
    return merged


def read_one(text: str, file: Path) -> _Config:
    """What stands in a file; UserError when that is no kubeconfig."""
    documents = read_documents(text, str(file))
    if not documents:
        return _EMPTY
    if len(documents) > 1:
        raise UserError(f"{file}: a kubeconfig is one document, and these are {len(documents)}: keep one of them")
    (document,) = documents
    try:
        found = msgspec.convert(_without_nulls(document.value), _Config)
    except msgspec.ValidationError as error:
        raise UserError(f"{_where(document, error)}: this is no kubeconfig: {error}") from error
    if found.kind != "Config":
        raise UserError(f"{file}: this is no kubeconfig, but a {found.kind}: name a file whose kind is Config")
    return found


def from_base64(text: str, told: str) -> str:
    """The text that is in base64; UserError when none is. `told` is where it stands."""
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise UserError(f"{told} is not base64: encode the file again") from error


def _text_of(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: this is no kubeconfig: it is not UTF-8 text") from error
    except OSError as error:
        raise UserError(f"cannot read the kubeconfig {file}: {error.strerror}: allow it, or name another") from error


def _where(document: Document, error: msgspec.ValidationError) -> str:
    """The line that msgspec means, with its `… - at `$.users[0].name``."""
    _, _, path = str(error).partition(" - at `$")
    try:
        return document.where(FieldPath.parse(path.rstrip("`").removeprefix(".")))
    except UserError:
        return document.source


def _without_nulls(value: Json) -> Json:
    """A member without a value is one that is not there, to kubectl and to us."""
    match value:
        case Mapping():
            return {key: _without_nulls(one) for key, one in value.items() if one is not None}
        case list():
            return [_without_nulls(one) for one in value]
        case _:
            return value


def _add(merged: KubeConfig, file: Path, found: _Config) -> None:
    merged.current_context = merged.current_context or found.current_context
    _add_named(merged.clusters, file, "cluster", [(one.name, one.cluster) for one in found.clusters])
    _add_named(merged.users, file, "user", [(one.name, one.user) for one in found.users])
    _add_named(merged.contexts, file, "context", [(one.name, one.context) for one in found.contexts])


def _add_named(known: dict[str, Entry[T]], file: Path, what: str, found: list[tuple[str, T]]) -> None:
    names = set()
    for name, value in found:
        if name in names:
            raise UserError(f"{file}: the {what} {name} stands twice: keep one of them")
        names.add(name)
        known.setdefault(name, Entry(value, file))
