"""The contract of every store about watches, and about closing."""

import asyncio

import pytest

from setpoint.engine.ports import ResourceChangeType, ResourceList, ResourceQuery, Store
from setpoint.engine.resource import Resource, Revision
from setpoint.errors import RevisionExpired, StoreError
from tests.stores.samples import REF, as_known, brief, instance, take


class Watching:
    """What `watch` shows."""

    def test_shows_every_change_after_the_list_once_and_in_order(self, store: Store, loop: asyncio.Runner) -> None:
        loop.run(store.apply(instance("before")))
        since = loop.run(store.list()).revision
        created = loop.run(store.apply(instance()))
        updated = loop.run(store.update_status(created, {"a": 1}))
        loop.run(store.delete(REF))
        loop.run(store.apply(instance("after")))

        events = loop.run(take(store.watch(since), 4))

        assert brief(events) == [("added", "db"), ("modified", "db"), ("deleted", "db"), ("added", "after")]
        assert [event.resource for event in events[:2]] == [created, updated]
        assert brief(loop.run(take(store.watch(events[1].revision), 2))) == brief(events[2:])

    def test_a_deletion_shows_the_resource_as_it_was(self, store: Store, loop: asyncio.Runner) -> None:
        loop.run(store.set_finalizers(loop.run(store.apply(instance())), ("x.dev/f",)))
        marked = loop.run(store.delete(REF))
        assert marked is not None
        loop.run(store.set_finalizers(marked, ()))

        (event,) = loop.run(take(store.watch(marked.revision), 1))

        assert (event.change, as_known(event.resource)) == (ResourceChangeType.DELETED, as_known(marked))

    def test_a_watch_resumes_from_the_revision_of_any_event(self, store: Store, loop: asyncio.Runner) -> None:
        since = loop.run(store.list()).revision
        for name in ("a", "b", "c"):
            loop.run(store.apply(instance(name)))
        events = loop.run(take(store.watch(since), 3))

        for position, event in enumerate(events[:-1]):
            assert loop.run(take(store.watch(event.revision), 1)) == [events[position + 1]]

    def test_writes_that_change_nothing_are_not_shown(self, store: Store, loop: asyncio.Runner) -> None:
        created = loop.run(store.apply(instance()))
        loop.run(store.apply(instance()))
        loop.run(store.annotate(created, {}))
        loop.run(store.update_status(created, {}))
        loop.run(store.apply(instance("next")))

        assert brief(loop.run(take(store.watch(created.revision), 1))) == [("added", "next")]

    def test_a_change_wakes_all_waiting_watches(self, store: Store, loop: asyncio.Runner) -> None:
        async def scenario() -> list[list[tuple[str, str]]]:
            since = (await store.list()).revision
            watchers = [asyncio.create_task(take(store.watch(since), 2)) for _ in range(3)]
            await asyncio.sleep(0)
            await store.apply(instance("a"))
            await store.apply(instance("b"))
            return [brief(await watcher) for watcher in watchers]

        assert loop.run(scenario()) == [[("added", "a"), ("added", "b")]] * 3

    def test_a_watch_shows_concurrent_writes_exactly_once(self, store: Store, loop: asyncio.Runner) -> None:
        names = [f"db-{number}" for number in range(60)]

        async def scenario() -> list[tuple[str, str]]:
            since = (await store.list()).revision
            watcher = asyncio.create_task(take(store.watch(since), len(names)))
            await asyncio.gather(*(store.apply(instance(name)) for name in names))
            return brief(await watcher)

        assert sorted(loop.run(scenario())) == sorted(("added", name) for name in names)

    def test_a_list_and_a_watch_can_be_of_any_length(self, store: Store, loop: asyncio.Runner) -> None:
        names = [f"db-{number}" for number in range(1_000)]

        async def scenario() -> tuple[list[str], list[str], list[str]]:
            since = (await store.list()).revision
            await asyncio.gather(*(store.apply(instance(name, labels={"last": name[-1]})) for name in names))
            listed = [resource.ref.name for resource in (await store.list()).resources]
            events = await take(store.watch(since), 1_000)
            sevens = await take(store.watch(since, ResourceQuery(labels={"last": "7"})), 100)
            return listed, [event.resource.ref.name for event in events], [event.resource.ref.name for event in sevens]

        listed, seen, sevens = loop.run(scenario())

        assert listed == sorted(names)
        assert sorted(seen) == sorted(names)
        assert sorted(sevens) == sorted(names[7::10])

    def test_pages_are_slices_of_the_list(self, store: Store, loop: asyncio.Runner) -> None:
        for name in ("a", "b", "c", "d", "e"):
            loop.run(store.apply(instance(name, labels={"is": "vowel" if name in "ae" else "consonant"})))
        whole = loop.run(store.list())

        async def read(query: ResourceQuery) -> list[ResourceList]:
            return [page async for page in store.pages(query, 2)]

        pages, consonants = loop.run(read(ResourceQuery())), loop.run(read(ResourceQuery(labels={"is": "consonant"})))

        assert [one for page in pages for one in page.resources] == list(whole.resources)
        assert len({page.revision for page in pages}) == 1
        assert max(len(page.resources) for page in pages) == 2
        assert [one.ref.name for page in consonants for one in page.resources] == ["b", "c", "d"]

    def test_a_resource_of_a_page_equals_that_of_the_list(self, store: Store, loop: asyncio.Runner) -> None:
        created = loop.run(store.apply(instance("a", labels={"x": "y"}, annotations={"k": "v"})))
        loop.run(store.update_status(created, {"conditions": [], "shown": 1}))

        async def read() -> Resource:
            (one,) = [one async for page in store.pages() for one in page.resources]
            return one

        light, whole = loop.run(read()), loop.run(store.list()).resources[0]

        for name in ("ref", "uid", "revision", "generation", "labels", "annotations", "status", "spec", "finalizers"):
            assert getattr(light, name) == getattr(whole, name), name
        assert light.author_digest == whole.author_digest == Resource(whole.document).author_digest
        assert (light.mentions("nowhere in it"), light.mentions("apiVersion")) == (False, True)
        assert Resource(whole.document).mentions("anything: it is not known")

    def test_empty_pages_have_a_revision_to_watch_from(self, store: Store, loop: asyncio.Runner) -> None:
        async def read() -> list[ResourceList]:
            return [page async for page in store.pages(ResourceQuery(kind="SQLInstance"))]

        (page,) = loop.run(read())
        loop.run(store.apply(instance()))

        assert page.resources == ()
        assert brief(loop.run(take(store.watch(page.revision, ResourceQuery(kind="SQLInstance")), 1))) == [
            ("added", "db")
        ]

    def test_a_change_between_two_pages_is_in_the_watch(self, store: Store, loop: asyncio.Runner) -> None:
        for name in ("a", "c", "e"):
            loop.run(store.apply(instance(name)))

        async def scenario() -> tuple[list[str], list[tuple[str, str]]]:
            seen: list[str] = []
            since = Revision("")
            async for page in store.pages(ResourceQuery(), 1):
                since = page.revision
                seen += [one.ref.name for one in page.resources]
                if seen == ["a"]:
                    await store.apply(instance("b"))
                    await store.delete(REF._replace(name="a"))
            return seen, brief(await take(store.watch(since), 2))

        seen, events = loop.run(scenario())

        # A later page may show a change in between, or not: the watch shows it in any case.
        assert [name for name in seen if name != "b"] == ["a", "c", "e"]
        assert events == [("added", "b"), ("deleted", "a")]

    def test_a_cancelled_watch_leaves_nothing_behind(self, store: Store, loop: asyncio.Runner) -> None:
        async def scenario() -> set[asyncio.Task[object]]:
            since = (await store.list()).revision
            watcher = asyncio.create_task(take(store.watch(since), 1))
            await asyncio.sleep(0)
            watcher.cancel()
            await asyncio.wait([watcher])
            await store.apply(instance())
            return asyncio.all_tasks() - {asyncio.current_task()}

        assert loop.run(scenario()) == set()

    def test_shows_only_what_matches_the_query(self, store: Store, loop: asyncio.Runner) -> None:
        since = loop.run(store.list()).revision
        loop.run(store.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "no"}}))
        loop.run(store.apply(instance("no", namespace="other")))
        loop.run(store.apply(instance("yes")))

        query = ResourceQuery(kind="SQLInstance", namespace="default")

        assert brief(loop.run(take(store.watch(since, query), 1))) == [("added", "yes")]

    def test_a_watch_by_labels_adds_and_deletes_resources_as_their_labels_change(
        self, store: Store, loop: asyncio.Runner
    ) -> None:
        since = loop.run(store.list()).revision
        loop.run(store.apply(instance(labels={"team": "b"})))
        joined = loop.run(store.apply(instance(labels={"team": "a"})))
        stays = loop.run(store.apply(instance(labels={"team": "a", "x": "y"}, spec={"size": 2})))
        loop.run(store.apply(instance(labels={"team": "b"}, spec={"size": 3})))
        loop.run(store.delete(REF))
        loop.run(store.apply(instance("end", labels={"team": "a"})))

        events = loop.run(take(store.watch(since, ResourceQuery(labels={"team": "a"})), 4))

        assert brief(events) == [("added", "db"), ("modified", "db"), ("deleted", "db"), ("added", "end")]
        assert [as_known(event.resource) for event in events[:3]] == [as_known(one) for one in (joined, stays, stays)]

    @pytest.mark.parametrize("since", ["", "never", "-1", "\u0661"])
    def test_an_unknown_revision_has_expired(self, store: Store, loop: asyncio.Runner, since: str) -> None:
        with pytest.raises(RevisionExpired, match="list again, then watch from there"):
            loop.run(take(store.watch(Revision(since)), 1))


class Closing:
    """What a closed store does."""

    def test_a_closed_store_refuses_everything(self, store: Store, loop: asyncio.Runner) -> None:
        created = loop.run(store.apply(instance()))
        loop.run(store.close())
        loop.run(store.close())

        for call in (
            store.get(REF),
            store.list(),
            store.apply(instance()),
            store.create(instance()),
            store.replace(created, instance(labels={"a": "1"})),
            store.delete(REF),
            store.update_status(created, {"a": 1}),
            store.events(),
            store.acquire("a", "b", 1),
            take(store.watch(created.revision), 1),
        ):
            with pytest.raises(StoreError, match="the store is closed"):
                loop.run(call)

    def test_closing_the_store_ends_a_watch_with_an_error(self, store: Store, loop: asyncio.Runner) -> None:
        async def scenario() -> None:
            watcher = asyncio.create_task(take(store.watch((await store.list()).revision), 1))
            await asyncio.sleep(0)
            await store.close()
            await watcher

        with pytest.raises(StoreError, match="the store is closed"):
            loop.run(scenario())
