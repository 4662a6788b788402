"""A PostgreSQL server as the client knows it: where it is, who logs in and how, and the names of objects in it."""

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote

DEFAULT_PORT: Final = 5432
DEFAULT_DATABASE: Final = "postgres"
DEFAULT_USER: Final = "postgres"
# PostgreSQL cuts longer names off.
MAX_NAME_BYTES: Final = 63
# The last part may be empty: the arguments of a function that has none.
_LOCATION: Final = re.compile(r"postgresql://([^/:]+):([0-9]+)((?:/[^/]+)+/?)")


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """TLS of a connection: libpq's mode, and certificates as PEM. Empty: libpq's own defaults."""

    mode: str = ""
    authority: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Server:
    """A server, and the role that logs in there. An empty password: libpq's own sources, such as ~/.pgpass.

    `token_file` has the password of the moment, which another program renews: it is read for each connection.
    """

    host: str
    port: int = DEFAULT_PORT
    user: str = DEFAULT_USER
    password: str = field(default="", repr=False)
    database: str = DEFAULT_DATABASE
    tls: TlsFiles = TlsFiles()
    token_file: str = ""

    @property
    def address(self) -> str:
        """Host and port, as they stand in a location: each object there has one name, whichever role logs in."""
        return f"postgresql://{_escaped(self.host)}:{self.port}"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ObjectAddress:
    """A parsed location: host, port, and pairs such as `databases`, `app`, `schemas`, `orders`."""

    host: str
    port: int
    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the object: its last part."""
        return self.parts[-1]

    @property
    def database(self) -> str:
        """The database that contains the object; empty for one of the whole server, as a role is."""
        return self.parts[1] if self.parts[0] == "databases" and len(self.parts) > 2 else ""


def render_location(server: Server, *parts: str) -> str:
    """The location of an object; each part may have any characters."""
    return "/".join((server.address, *map(_escaped, parts)))


def parse_location(location: str) -> ObjectAddress | None:
    """The parsed location; None for a text that is none of this plug-in's."""
    found = _LOCATION.fullmatch(location)
    if found is None:
        return None
    parts = tuple(unquote(part) for part in found[3][1:].split("/"))
    return ObjectAddress(unquote(found[1]), int(found[2]), parts)


def connection_entries(server: Server, role: str, password: str) -> dict[str, str]:
    """What a client needs to log in as the role, by the keys of a Secret; the first four are Crossplane's."""
    login, database = f"{_escaped(role)}:{_escaped(password)}", _escaped(server.database)
    is_folder = server.host.startswith("/")
    # The folder of a socket is no host of an address.
    address = f"/{database}?host={_escaped(server.host)}&port={server.port}" if is_folder else None
    host = f"[{server.host}]" if ":" in server.host else server.host
    uri = f"postgresql://{login}@{address or f'{host}:{server.port}/{database}'}"
    found = {"username": role, "password": password, "endpoint": server.host, "port": str(server.port)}
    return {**found, "database": server.database, "uri": uri}


def is_name(text: str) -> bool:
    """Whether an object of PostgreSQL can have this very name: longer names would be cut off, NUL ends a text."""
    return 0 < len(text.encode("utf-8", "surrogatepass")) <= MAX_NAME_BYTES and "\0" not in text and _is_text(text)


def _is_text(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _escaped(text: str) -> str:
    return quote(text, safe="")
