"""What a process with another catalogue does to what an earlier one made: it compares anew, and writes nothing."""

import asyncio
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import FieldFacts, KindFacts, facts_of
from setpoint.engine.step.preview import PreviewFinding
from setpoint.kinds.gcp.generic.kind import GoogleKind, revision_of
from setpoint.testing import contract_harness
from setpoint.testing.upgrades import KindUpgrade, play_upgrade, read_only
from tests.kinds.lifecycle_catalogue import TopicFixture

NO_CLIENT: Any = None
TOPIC = ("pubsub.cnrm.cloud.google.com", "PubSubTopic")


def _changed(row: KindFacts, name: str, **facts: Any) -> KindFacts:
    field = msgspec.structs.replace(row.fields[name], **facts)
    return msgspec.structs.replace(row, fields={**row.fields, name: field})


@given(st.sampled_from(sorted(kinds_by_group())), st.data())
def test_a_row_that_says_something_else_is_another_revision(name: tuple[str, str], data: st.DataObject) -> None:
    row = facts_of(name)
    field = data.draw(st.sampled_from(sorted(row.fields)))
    facts: FieldFacts = row.fields[field]
    other = data.draw(
        st.sampled_from(
            [
                _changed(row, field, immutable=not facts.immutable),
                _changed(row, field, to=f"{facts.to}Other"),
                msgspec.structs.replace(row, host=f"other-{row.host}"),
            ]
        )
    )

    assert revision_of(other) != revision_of(row)


def test_the_same_row_is_the_same_revision_in_every_process() -> None:
    row = facts_of(TOPIC)
    read_again = msgspec.json.decode(msgspec.json.encode(row), type=KindFacts)

    assert GoogleKind.of(row, NO_CLIENT).revision == revision_of(read_again)


def test_a_process_with_the_same_row_finds_the_cookie_as_it_was() -> None:
    async def played() -> PreviewFinding:
        async with contract_harness(TopicFixture()) as harness:
            await harness.settle()
            fixture = harness.fixture
            assert isinstance(fixture, TopicFixture)
            harness.kind = fixture.new_kind(fixture.open_client())
            return (await read_only(harness)).finding

    assert asyncio.run(played()) is PreviewFinding.IN_SYNC


def test_a_changed_row_leads_to_one_comparison_and_to_no_write() -> None:
    async def played() -> None:
        async with contract_harness(TopicFixture()) as harness:
            old = harness.fixture.kind
            assert isinstance(old, GoogleKind)
            row = _changed(old.row, "kmsKeyRef", immutable=not old.row.fields["kmsKeyRef"].immutable)
            await play_upgrade(harness, KindUpgrade(old, GoogleKind.of(row, old.google)))

    asyncio.run(played())
