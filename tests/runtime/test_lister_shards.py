"""Lists, where some of what is on a shelf is looked at by other processes."""

from tests.runtime.listed_rig import ListedRig, names_on, play_listed

TWENTY = names_on("a", 20)
# When the first regular look is due, and a little.
FIRST = 400.0


def test_a_list_is_read_for_what_is_looked_at_here_and_says_nothing_of_the_rest() -> None:
    async def scenario(listed: ListedRig) -> None:
        ours, theirs = TWENTY[:12], TWENTY[12:]
        await listed.declare(*TWENTY)
        listed.list_resync.is_reconciled_here = lambda ref: ref.name in ours
        listed.forget_looks()
        await listed.rig.clock.sleep(FIRST)
        told = list(listed.listings)
        listed.list_resync.is_reconciled_here = lambda ref: ref.name in ours[:9]
        listed.forget_looks()
        await listed.rig.clock.sleep(FIRST)

        assert told == [("complete", 12)]
        assert not set(listed.kind.decoded) & set(theirs)
        # Nine of ours are too few, though there are twenty on the shelf.
        assert listed.listings == []

    play_listed(scenario)
