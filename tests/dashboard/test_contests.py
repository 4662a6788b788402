"""A field that another writer keeps changing: the page has the value of each side."""

import asyncio
import json
from typing import Any

from tests.dashboard.pages import dashboard_on
from tests.library.worlds import bucket, world

BUCKET = "StorageBucket.storage.cnrm.cloud.google.com/default/logs"


def contests(manifest: dict[str, Any], *edits: dict[str, Any]) -> Any:
    """What the page shows after another writer made these edits, each reverted by a step while that may be."""

    async def main() -> Any:
        async with world() as here, here.open() as session:
            await session.apply(manifest)
            for edit in edits:
                here.cloud.edit("/b/logs", edit)
                await session.reconcile("StorageBucket/logs", wait=False)
            async with dashboard_on(session) as page:
                return (await page.get(f"/resources/{BUCKET}"))["contests"]

    return asyncio.run(main())


def test_our_value_is_that_of_the_spec_beside_those_of_the_other_writer() -> None:
    edits = [{"storageClass": one} for one in ("COLDLINE", "ARCHIVE", "COLDLINE", "ARCHIVE")]

    (found,) = contests(bucket(storageClass="NEARLINE"), *edits)

    assert (found["path"], found["ours"], found["count"]) == ("spec.storageClass", "NEARLINE", 4)
    assert found["theirs"] == ['"ARCHIVE"', '"COLDLINE"']


def test_our_value_of_a_field_that_no_spec_has_is_what_was_written() -> None:
    (found,) = contests(bucket(), *([{"storageClass": "COLDLINE"}] * 4))

    assert (found["path"], found["ours"]) == ("spec.storageClass", "STANDARD")


def test_a_field_that_is_to_be_unset_has_no_value_of_ours() -> None:
    (found,) = contests(bucket(), *({"labels": {"owner": f"{number}"}} for number in range(4)))

    assert (found["path"], "ours" in found, found["theirs"][0]) == ("metadata.labels.owner", False, '"3"')


def test_our_value_is_there_while_a_correction_waits() -> None:
    # The steps after the third correction wait, and record what they withhold.
    (found,) = contests(bucket(storageClass="NEARLINE"), *([{"storageClass": "COLDLINE"}] * 6))

    assert (found["ours"], found["theirs"]) == ("NEARLINE", ['"COLDLINE"'])


def test_of_a_store_alone_the_next_step_is_when_the_correction_that_waits_may_be_written() -> None:
    async def times(edits: int) -> list[Any]:
        async with world() as here, here.open() as session:
            for _ in range(edits):
                await session.apply(bucket(storageClass="NEARLINE"), wait=False)
                here.cloud.edit("/b/logs", {"storageClass": "COLDLINE"})
            await session.apply(bucket(storageClass="NEARLINE"), wait=False)
            async with dashboard_on(session) as page:
                (row,) = (await page.get("/resources"))["resources"]
                details = await page.get(f"/resources/{BUCKET}")
                assert row["nextStep"] == details["row"]["nextStep"] == details["nextStep"]["time"]
                return [row["nextStep"], row["lastStep"]]

    waiting, last = asyncio.run(times(6))

    assert waiting > last
    assert asyncio.run(times(1))[0] is None


def test_neither_side_of_a_field_with_a_secret_sounding_name_is_shown() -> None:
    manifest = bucket()
    manifest["metadata"]["labels"] = {"password": "mine-of-old"}

    found = contests(manifest, *({"labels": {"password": f"theirs-{number}"}} for number in range(4)))

    assert [one["path"] for one in found] == ["metadata.labels.password"]
    assert not [text for text in ("mine-of-old", "theirs-") if text in json.dumps(found)]
