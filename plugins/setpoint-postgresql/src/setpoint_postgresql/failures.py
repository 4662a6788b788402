"""Failures of PostgreSQL as errors of setpoint: the class decides the retry, the message says what to do.

Messages are made from the server's primary message, detail and hint. The statement is never part of one: it may
contain a password's verifier.
"""

from typing import Final

import psycopg

from setpoint.kind import (
    AlreadyExists,
    DependencyNotReady,
    RemoteConflict,
    RemoteInvalid,
    RemoteRefused,
    RemoteUnavailable,
    SetpointError,
)

# Classes of SQLSTATE: two characters.
_UNAVAILABLE_CLASSES: Final = ("08", "53", "58")
# The server ends or starts, the connection was ended by an administrator, a time-out.
_UNAVAILABLE: Final = ("57P01", "57P02", "57P03", "57P04", "57P05", "57014", "25P03", "25P04")
# Another writer was in the way: read again, plan again.
_CONFLICTS: Final = ("40001", "40P01", "55P03", "XX000")
# The object that was to be created exists: database, role or extension, schema.
_EXISTS: Final = ("42P04", "42710", "42P06", "42P07", "23505")
# What the statement names is not there: another resource, or a migration, may create it.
_NOT_FOUND: Final = ("3D000", "3F000", "42P01", "42704", "42703", "42883")
_INVALID_CLASSES: Final = ("22", "42")
_ADVICE: Final = {
    "42501": "the role that setpoint logs in as lacks a privilege: grant it, or let another role log in",
    "2BP01": "other objects depend on it: say in spec.onDelete what becomes of them",
    "55006": "other sessions use it: end them, or set spec.onDelete.force",
    "0LP01": "the role cannot grant this: let its owner log in, or a role with the grant option",
    "28P01": "check the password in the Secret",
    "25006": "the server is read-only, a standby perhaps: connect to the primary",
}
# On a failed connection there is no SQLSTATE: these are told apart by the text.
_REFUSED_LOGINS: Final = (
    "authentication failed",
    "no pg_hba.conf entry",
    "certificate verify failed",
    "certificate",
    "does not exist",
    "not permitted to log in",
    "does not support SSL",
    "server certificate for",
    "root certificate",
    "no password supplied",
    "permission denied for database",
)
WRONG_PASSWORD: Final = "password authentication failed"


class DatabaseNotFound(DependencyNotReady):
    """The database to connect to does not exist."""


def translated(error: psycopg.Error, doing: str) -> SetpointError:
    """The error of setpoint for one of psycopg's, while `doing` something: `create role app at db:5432`."""
    state = error.sqlstate or ""
    text = f"{doing}: {_message(error)}"
    if state in _ADVICE:
        text = f"{text}; {_ADVICE[state]}"
    if state in _NOT_FOUND:
        return DependencyNotReady(text)
    if state in _EXISTS:
        return AlreadyExists(text)
    if state in _CONFLICTS:
        return RemoteConflict(text)
    if state in _UNAVAILABLE or state[:2] in _UNAVAILABLE_CLASSES or not state:
        return RemoteUnavailable(text)
    if state[:2] in _INVALID_CLASSES and state != "42501":
        return RemoteInvalid(text)
    return RemoteRefused(text)


def translated_connection(error: psycopg.Error, doing: str) -> SetpointError:
    """The same for a connection that could not be made."""
    text = f"{doing}: {_first_line(error)}"
    if any(one in str(error) for one in _REFUSED_LOGINS):
        return RemoteRefused(f"{text}; check spec.connection, its Secret, and pg_hba.conf of the server")
    return RemoteUnavailable(text)


def is_wrong_password(error: psycopg.Error) -> bool:
    """Whether the server says that the password is wrong, and not that it could not be checked."""
    return WRONG_PASSWORD in str(error)


def _message(error: psycopg.Error) -> str:
    """What the server says, without the statement that it excerpts."""
    diagnosis = error.diag
    found = [diagnosis.message_primary, diagnosis.message_detail, diagnosis.message_hint]
    return "; ".join(one.strip() for one in found if one) or _first_line(error)


def _first_line(error: psycopg.Error) -> str:
    """A failure of the connection itself; libpq adds lines for each address that it tried."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if "FATAL" in line or "failed" in line or "error" in line), (lines or ["?"])[0])
