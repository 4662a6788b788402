"""Lists of a scope with members that other replicas reconcile."""

from tests.runtime.list_resync_harness import ListResyncHarness, names_in, play_list_resync

TWENTY = names_in("a", 20)
# When the first resync is due, with a margin.
FIRST = 400.0


def test_a_list_answers_only_for_resources_that_this_replica_reconciles() -> None:
    async def scenario(listed: ListResyncHarness) -> None:
        ours, theirs = TWENTY[:12], TWENTY[12:]
        await listed.declare(*TWENTY)
        listed.list_resync.is_reconciled_here = lambda ref: ref.name in ours
        listed.reset_counts()
        await listed.harness.clock.sleep(FIRST)
        first = list(listed.listings)
        listed.list_resync.is_reconciled_here = lambda ref: ref.name in ours[:9]
        listed.reset_counts()
        await listed.harness.clock.sleep(FIRST)

        assert first == [("complete", 12)]
        assert not set(listed.kind.decoded) & set(theirs)
        # Nine of this replica's are too few, though the scope has twenty members.
        assert listed.listings == []

    play_list_resync(scenario)
