"""Who we are to Google, as google-auth finds it: a credentials file, gcloud's own, or the metadata server."""

import os
import re
import warnings
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any, Final

import msgspec
from google import auth
from google.auth import _cloud_sdk, exceptions
from google.auth.credentials import Credentials, with_scopes_if_required

from setpoint.clients.google_auth import Token
from setpoint.clients.google_errors import message_in
from setpoint.clients.google_token_calls import TokenCalls
from setpoint.errors import RemoteError, RemoteRefused, RemoteUnavailable

SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
FILE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
WHAT_TO_DO: Final = (
    "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a credentials file, "
    "or set SETPOINT_GCP_AUTH=anonymous for a local server"
)
_LONGEST: Final = 200
# Keys and tokens: all that follows the first words of a key, and long runs of small and capital letters with digits.
_SECRET: Final = re.compile(
    r"-----BEGIN.*|(?=[\w.~+=-]*[a-z])(?=[\w.~+=-]*[A-Z])(?=[\w.~+=-]*\d)[\w.~+=-]{24,}", re.DOTALL
)
# google-auth has types in part.
_failures: Final[Any] = exceptions
_google: Final[Any] = auth
# What google-auth stumbles over when a file or an answer has not the form that it takes for granted. The last is how it
# says that credentials of a sort cannot do what is asked of them: be narrowed to scopes, be signed with.
_STUMBLES: Final = (ValueError, TypeError, LookupError, AttributeError, OSError, NotImplementedError)


@dataclass(frozen=True, slots=True)
class Identity:
    """Credentials, and where they were found: as people are told."""

    credentials: Credentials = field(repr=False)
    where: str


class ApplicationDefault:
    """Application Default Credentials. Those that Google refuses are looked for anew: somebody may replace the file."""

    def __init__(self) -> None:
        self._identity: Identity | None = None

    def fetch(self) -> Token:
        """A new token. RemoteRefused when there will be none until somebody acts, RemoteUnavailable when there may."""
        with TokenCalls() as calls:
            try:
                identity = self._identity = self._identity or find_identity(calls)
                return _token(identity, calls)
            except RemoteRefused:
                self._identity = None
                raise


# What google-auth raises goes no further than this module: it may hold whole answers, with a token in them.


def find_identity(calls: TokenCalls) -> Identity:
    """What google-auth finds; RemoteRefused names the file that cannot be used, or says that there is nothing."""
    named = os.environ.get(FILE, "")
    if named:
        return _in_file(Path(named), f"{FILE} ({named})")
    own = Path(_cloud_sdk.get_application_default_credentials_path())  # type: ignore[no-untyped-call]  # types in part
    if own.is_file():
        return _in_file(own, str(own))
    try:
        credentials, _project = _google.default(SCOPES, calls)
    except (_failures.GoogleAuthError, *_STUMBLES):
        raise RemoteRefused(f"no Google credentials: no file, and no metadata server; {WHAT_TO_DO}") from None
    return Identity(credentials, "the metadata server")


def _in_file(path: Path, where: str) -> Identity:
    why = _flaw(path)
    if why is None:
        try:
            return Identity(_loaded(path), where)
        except _failures.GoogleAuthError as error:
            why = _words(error)
        except _STUMBLES:
            why = "it lacks what its type has to have"
    raise RemoteRefused(f"the Google credentials in {where} cannot be used: {why}; {WHAT_TO_DO}")


def _flaw(path: Path) -> str | None:
    """What keeps anybody from reading the file; None when it holds an object."""
    try:
        found = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        return "there is no such file"
    except OSError as error:
        return error.strerror
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    return None if isinstance(found, dict) else "that is no JSON object"


def _loaded(path: Path) -> Credentials:
    with warnings.catch_warnings():
        # Of files that strangers may have written, and of people without a project for their quota. The author of the
        # environment is no stranger, and the services say what they lack.
        warnings.simplefilter("ignore")
        found, _project = _google.load_credentials_from_file(str(path))
    credentials: Credentials = with_scopes_if_required(found, SCOPES)  # type: ignore[no-untyped-call]  # types in part
    return credentials


def _token(identity: Identity, calls: TokenCalls) -> Token:
    credentials = identity.credentials
    try:
        credentials.refresh(calls)  # type: ignore[no-untyped-call]  # google-auth has types in part
    except (_failures.GoogleAuthError, *_STUMBLES) as error:
        raise _refusal(error, identity, calls) from None
    if not credentials.token:
        raise _no_token()
    headers: dict[str, str] = {}
    credentials.apply(headers)  # type: ignore[no-untyped-call]  # google-auth has types in part
    return Token(headers, _seconds_left(credentials))


def _refusal(error: Exception, identity: Identity, calls: TokenCalls) -> RemoteError:
    if calls.trouble is not None:
        return calls.trouble
    if not isinstance(error, _failures.GoogleAuthError):
        return _no_token()
    if getattr(error, "retryable", False):
        return RemoteUnavailable(f"no Google token: {_words(error)}; look at the network")
    return RemoteRefused(f"Google gives the credentials of {identity.where} no token: {_words(error)}; {WHAT_TO_DO}")


def _no_token() -> RemoteUnavailable:
    return RemoteUnavailable("no Google token: the answer is not what it should be; look at the network")


def _seconds_left(credentials: Credentials) -> float:
    """google-auth keeps the end as a time in UTC that does not say so."""
    expiry = credentials.expiry
    return inf if expiry is None else (expiry.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds()


def _words(error: Exception) -> str:
    """What google-auth says, in a line without anything secret: whole answers may stand in it."""
    told = str(error.args[0]) if error.args else type(error).__name__
    # What is wrong in particular comes second.
    match error.args[1:2]:
        case (Exception() as cause,):
            told = str(cause)
        case (str(body),) if message := message_in(body.encode()):
            told = f"{told}: {message}"
        case _:
            pass
    return _SECRET.sub("…", " ".join(told.split()))[:_LONGEST].rstrip(". ")
