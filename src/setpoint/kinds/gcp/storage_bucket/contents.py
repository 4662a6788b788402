"""The objects in a bucket that is being deleted."""

import asyncio
from typing import Final

import msgspec
from msgspec import Struct

from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import GoogleClient
from setpoint.clients.response_bodies import decode_response
from setpoint.core.schema import annotations as known_annotations
from setpoint.core.schema.annotations import annotation_value
from setpoint.core.values.json_limits import MAX_LIST_VALUES
from setpoint.engine.resource import Resource
from setpoint.errors import RemoteRefused

FORCE_DESTROY: Final = known_annotations.FORCE_DESTROY
_CONCURRENCY: Final = 20


class _Version(Struct, frozen=True):
    name: str
    generation: str = ""


class _Page(Struct, frozen=True):
    items: list[_Version] = []
    nextPageToken: str = ""


_page: Final = msgspec.json.Decoder(_Page)


async def empty_bucket(bucket: str, resource: Resource, google: GoogleClient) -> None:
    """Deletes every object of the bucket if force-destroy is set; RemoteRefused for a bucket with objects if not."""
    may_destroy = annotation_value(resource.annotations, FORCE_DESTROY) == "true"
    while versions := await _first_page(bucket, google):
        if not may_destroy:
            raise RemoteRefused(
                f"bucket {bucket} is not empty: it holds {versions[0].name!r}. Delete its objects, old versions too; "
                f'or set {FORCE_DESTROY}: "true" to have them deleted; '
                "or cnrm.cloud.google.com/deletion-policy: abandon to leave the bucket"
            )
        for first in range(0, len(versions), _CONCURRENCY):
            await _delete(bucket, versions[first : first + _CONCURRENCY], google)


async def _first_page(bucket: str, google: GoogleClient) -> list[_Version]:
    """The first page with objects, noncurrent versions included; earlier pages may be empty."""
    token = ""
    while True:
        query = {"versions": "true", **({"pageToken": token} if token else {})}
        body = await google.get(GoogleCall(GoogleService.STORAGE, ("b", bucket, "o"), query))
        page = (
            _Page()
            if body is None
            else decode_response(_page, body, f"the objects of bucket {bucket}", MAX_LIST_VALUES)
        )
        if page.items or not page.nextPageToken:
            return page.items
        token = page.nextPageToken


async def _delete(bucket: str, versions: list[_Version], google: GoogleClient) -> None:
    calls = [
        GoogleCall(GoogleService.STORAGE, ("b", bucket, "o"), {"generation": one.generation}, one.name)
        for one in versions
    ]
    # All requests end before the first error is raised: none is left running.
    ended = await asyncio.gather(*map(google.delete, calls), return_exceptions=True)
    for one in ended:
        if isinstance(one, BaseException):
            raise one
