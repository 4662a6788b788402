"""Tokens from google-auth: fetched off the event loop, kept, and fetched again when Google refuses one."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from google.auth import default
from google.auth.credentials import Credentials as GoogleCredentials
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError
from google.auth.transport.requests import Request

from setpoint.errors import RemoteRefused, RemoteUnavailable

SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
WHAT_TO_DO: Final = (
    "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a credentials file, "
    "or set SETPOINT_GCP_AUTH=anonymous for a local server"
)


def application_default() -> GoogleCredentials:
    """What google-auth finds: a credentials file (key, impersonation, federation), gcloud's, or the metadata server."""
    credentials, _project = default(scopes=SCOPES)
    return credentials


class TokenCredentials:
    """Many may ask at once: one of them fetches, in a thread, and the others wait for it."""

    def __init__(self, load: Callable[[], GoogleCredentials] = application_default) -> None:
        self._load = load
        self._credentials: GoogleCredentials | None = None
        self._one_at_a_time = asyncio.Lock()

    async def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """The headers with a token that has some time left, and is another than the one in `refused`."""
        held = self._held()
        if held is None or held == refused:
            async with self._one_at_a_time:
                held = self._held()
                if held is None or held == refused:
                    held = await asyncio.to_thread(self._fetch)
        return held

    def _held(self) -> Mapping[str, str] | None:
        if self._credentials is None or not self._credentials.valid:
            return None
        return _headers(self._credentials)

    def _fetch(self) -> Mapping[str, str]:
        try:
            self._credentials = self._credentials or self._load()
            self._credentials.refresh(Request())  # type: ignore[no-untyped-call]  # google-auth has types in part
        except DefaultCredentialsError as error:
            raise RemoteRefused(f"no Google credentials: {_said(error)}; {WHAT_TO_DO}") from error
        except GoogleAuthError as error:
            if isinstance(error, TransportError) or error.retryable:
                raise RemoteUnavailable(f"no Google token: {_said(error)}; look at the network") from error
            raise RemoteRefused(f"Google gives these credentials no token: {_said(error)}; {WHAT_TO_DO}") from error
        return _headers(self._credentials)


def _headers(credentials: GoogleCredentials) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    credentials.apply(headers)  # type: ignore[no-untyped-call]  # google-auth has types in part
    return headers


def _said(error: GoogleAuthError) -> str:
    """The first thing an error says; what follows may be a whole response."""
    return str(error.args[0])[:200] if error.args else type(error).__name__
