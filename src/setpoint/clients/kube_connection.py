"""Where a cluster is, whom to trust there, and who we are to it: what a kubeconfig comes to. No secret is printed."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from setpoint.core.values import Json
from setpoint.errors import RemoteRefused


@dataclass(frozen=True, slots=True)
class Inline:
    """Text that is at hand."""

    text: str = field(repr=False)

    def read(self) -> str:
        """The text."""
        return self.text


@dataclass(frozen=True, slots=True)
class File:
    """Text in a file, which may be another one each time."""

    path: Path
    # What it is, as a kubeconfig calls it.
    what: str

    def read(self) -> str:
        """The text now; RemoteRefused when it cannot be read."""
        try:
            return self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", "") or "it is not text"
            raise RemoteRefused(f"cannot read {self.what} {self.path}: {why}: put it there, or allow it") from error


Source: TypeAlias = Inline | File


# --- The server -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SystemRoots:
    """Those whom this machine trusts."""


@dataclass(frozen=True, slots=True)
class Authority:
    """Those whom one of these certificates, in PEM, has signed."""

    pem: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Anybody:
    """Whoever answers: the author of the kubeconfig wants it so."""


Trust: TypeAlias = SystemRoots | Authority | Anybody


# --- Us ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client certificate and its key, in PEM."""

    certificate: Source
    key: Source


@dataclass(frozen=True, slots=True)
class Nobody:
    """No login; a client certificate may say enough."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token. `otherwise` is the one to use while `token` cannot be read."""

    token: Source
    otherwise: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Password:
    """A name and a password."""

    username: str
    password: str = field(repr=False)


class Interactive(StrEnum):
    """Whether a command that logs in may ask somebody at a terminal."""

    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


@dataclass(frozen=True, slots=True)
class Exec:
    """A command that logs in. `cluster` is what it is told about the cluster, if it wants to know."""

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    api_version: str = "client.authentication.k8s.io/v1"
    interactive: Interactive = Interactive.IF_AVAILABLE
    install_hint: str = ""
    cluster: Json = field(default=None, repr=False)


Login: TypeAlias = Nobody | Bearer | Password | Exec


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Whom to act as."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Connection:
    """One cluster, as one user. `name` is how it is called in messages; `server` has no slash at its end.

    Long answers come `compressed`, unless that is not wanted.
    """

    name: str
    server: str
    trust: Trust = SystemRoots()
    server_name: str | None = None
    # It may have a password in it.
    proxy: str | None = field(default=None, repr=False)
    compressed: bool = True
    namespace: str = "default"
    certificate: Certificate | None = None
    login: Login = Nobody()
    impersonation: Impersonation | None = None
