"""Kubeconfig: the file format, several files merged as kubectl does, and the connection that a context resolves to.

No secret is printed.
"""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from setpoint.clients.sockets import AddressPolicy
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path as FieldPath
from setpoint.core.values.yaml_documents import YamlDocument, read_documents
from setpoint.errors import RemoteRefused, UserError


@dataclass(frozen=True, slots=True)
class InlineText:
    """Text in the kubeconfig itself."""

    text: str = field(repr=False)

    def read(self) -> str:
        """The text."""
        return self.text


@dataclass(frozen=True, slots=True)
class FileText:
    """Text in a file, which is read each time: it may have been replaced."""

    path: Path
    # The field of the kubeconfig that names the file.
    what: str

    def read(self) -> str:
        """The text now; RemoteRefused when it cannot be read."""
        try:
            return self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", "") or "it is not text"
            raise RemoteRefused(f"cannot read {self.what} {self.path}: {why}: put it there, or allow it") from error


TextSource: TypeAlias = InlineText | FileText


# --- The connection: how to trust the server --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SystemRoots:
    """The certificate authorities that this machine trusts."""


@dataclass(frozen=True, slots=True)
class CertificateAuthority:
    """These certificate authorities, in PEM."""

    pem: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SkipVerify:
    """No verification: insecure-skip-tls-verify."""


ServerTrust: TypeAlias = SystemRoots | CertificateAuthority | SkipVerify


# --- The connection: how to authenticate ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A client certificate and its key, in PEM."""

    certificate: TextSource
    key: TextSource


@dataclass(frozen=True, slots=True)
class NoLogin:
    """No login; a client certificate may be enough."""


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A token. `fallback` is used while `token` cannot be read."""

    token: TextSource
    fallback: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class BasicAuth:
    """A user name and a password."""

    username: str
    password: str = field(repr=False)


class InteractiveMode(StrEnum):
    """Whether an exec plugin may prompt the user at a terminal."""

    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A command that prints credentials. `cluster` is passed to it, if it wants provideClusterInfo."""

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    api_version: str = "client.authentication.k8s.io/v1"
    interactive: InteractiveMode = InteractiveMode.IF_AVAILABLE
    install_hint: str = ""
    cluster: Json = field(default=None, repr=False)


Login: TypeAlias = NoLogin | BearerToken | BasicAuth | ExecPlugin


@dataclass(frozen=True, slots=True)
class Impersonation:
    """The user to impersonate."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterConnection:
    """An API server and how to authenticate there. `name` is for messages; `server` has no slash at its end.

    `compressed`: responses may be. A server that a tenant named has `addresses`: those where it may be.
    """

    name: str
    server: str
    trust: ServerTrust = SystemRoots()
    server_name: str | None = None
    # The URL may contain a password.
    proxy: str | None = field(default=None, repr=False)
    compressed: bool = True
    namespace: str = "default"
    certificate: ClientCertificate | None = None
    login: Login = NoLogin()
    impersonation: Impersonation | None = None
    addresses: AddressPolicy | None = None


# --- The files --------------------------------------------------------------------------------------------------------


class ClusterEntry(Struct, frozen=True, rename="kebab"):
    """A cluster of a kubeconfig."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: tuple["ClusterExtension", ...] = ()

    def __repr__(self) -> str:
        return f"ClusterEntry({self.server!r})"


class ClusterExtension(Struct, frozen=True):
    """Data of another program."""

    name: str = ""
    extension: Any = None


class ExecVariable(Struct, frozen=True):
    """An environment variable of an exec plugin."""

    name: str = ""
    value: str = ""

    def __repr__(self) -> str:
        return f"ExecVariable({self.name!r})"


class ExecEntry(Struct, frozen=True, rename="camel"):
    """An exec plugin of a kubeconfig."""

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
    """The former way to log in, which kubectl removed."""

    name: str = ""


class UserEntry(Struct, frozen=True, rename="kebab"):
    """A user of a kubeconfig."""

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
    """A context of a kubeconfig: cluster, user and namespace."""

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
_EMPTY_CONFIG: Final = _Config()


@dataclass(frozen=True, slots=True)
class ConfigEntry(Generic[T]):
    """An entry, and the file that it is in."""

    value: T
    file: Path

    def path(self, text: str) -> Path:
        """A path that is relative to this file."""
        return self.file.parent / text


@dataclass(slots=True)
class MergedKubeconfig:
    """All files merged as kubectl does: the first file that has an entry of a name wins."""

    files: list[Path] = field(default_factory=list)
    current_context: str = ""
    clusters: dict[str, ConfigEntry[ClusterEntry]] = field(default_factory=dict)
    users: dict[str, ConfigEntry[UserEntry]] = field(default_factory=dict)
    contexts: dict[str, ConfigEntry[ContextEntry]] = field(default_factory=dict)

    def __str__(self) -> str:
        return ", ".join(map(str, self.files))


def load_files(files: Iterable[Path]) -> MergedKubeconfig:
    """The existing ones of `files`, merged; UserError says which file is invalid, and where."""
    merged = MergedKubeconfig()
    for file in dict.fromkeys(files):
        text = _read_file(file)
        if text is not None:
            _merge(merged, file.absolute(), parse_kubeconfig(text, file))
            merged.files.append(file)
    return merged


def load_text(text: str, source: str) -> MergedKubeconfig:
    """The same for the text of one; `source` names it in messages."""
    merged = MergedKubeconfig()
    _merge(merged, Path(source), parse_kubeconfig(text, Path(source)))
    merged.files.append(Path(source))
    return merged


def parse_kubeconfig(text: str, file: Path) -> _Config:
    """The content of one file; UserError when it is not a kubeconfig."""
    documents = read_documents(text, str(file))
    if not documents:
        return _EMPTY_CONFIG
    if len(documents) > 1:
        raise UserError(f"{file}: a kubeconfig is one document, and these are {len(documents)}: keep one of them")
    (document,) = documents
    try:
        found = msgspec.convert(_without_nulls(document.value), _Config)
    except msgspec.ValidationError as error:
        raise UserError(f"{_error_position(document, error)}: this is no kubeconfig: {error}") from error
    if found.kind != "Config":
        raise UserError(f"{file}: this is no kubeconfig, but a {found.kind}: name a file whose kind is Config")
    return found


def decode_base64(text: str, where: str) -> str:
    """The decoded text; UserError when it is not base64. `where` names it in messages."""
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except ValueError as error:
        raise UserError(f"{where} is not base64: encode the file again") from error


def _read_file(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: this is no kubeconfig: it is not UTF-8 text") from error
    except ValueError as error:
        raise UserError(f"cannot read the kubeconfig {str(file)!r}: {error}: name another file") from error
    except OSError as error:
        raise UserError(f"cannot read the kubeconfig {file}: {error.strerror}: allow it, or name another") from error


def _error_position(document: YamlDocument, error: msgspec.ValidationError) -> str:
    """File and line of the path in msgspec's message: `… - at `$.users[0].name``."""
    _, _, path = str(error).partition(" - at `$")
    try:
        return document.where(FieldPath.parse(path.rstrip("`").removeprefix(".")))
    except UserError:
        return document.source


def _without_nulls(value: Json) -> Json:
    """A null member is an absent one, as for kubectl."""
    match value:
        case Mapping():
            return {key: _without_nulls(one) for key, one in value.items() if one is not None}
        case list():
            return [_without_nulls(one) for one in value]
        case _:
            return value


def _merge(merged: MergedKubeconfig, file: Path, found: _Config) -> None:
    merged.current_context = merged.current_context or found.current_context
    _merge_named(merged.clusters, file, "cluster", [(one.name, one.cluster) for one in found.clusters])
    _merge_named(merged.users, file, "user", [(one.name, one.user) for one in found.users])
    _merge_named(merged.contexts, file, "context", [(one.name, one.context) for one in found.contexts])


def _merge_named(known: dict[str, ConfigEntry[T]], file: Path, what: str, found: list[tuple[str, T]]) -> None:
    names = set()
    for name, value in found:
        if name in names:
            raise UserError(f"{file}: the {what} {name} stands twice: keep one of them")
        names.add(name)
        known.setdefault(name, ConfigEntry(value, file))
