"""The process that owns a store does what others ask of it, over a socket that is its user's alone."""

import asyncio
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from setpoint.clients.admin_api import (
    AdminClient,
    ResourceName,
    connect_admin,
    socket_link,
)
from setpoint.engine.context import FINALIZER
from setpoint.engine.resource import ResourceRef
from setpoint.errors import (
    Bug,
    DependencyCycle,
    ManifestInvalid,
    NotReady,
    RemoteUnavailable,
    SetpointError,
    StoreInUse,
)
from setpoint.runtime.manager import Phase
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import GROUP, gadget_ref
from tests.runtime.owner import Owner

A, B = gadget_ref("a"), gadget_ref("b")
PAUSED = {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "Paused"}]}
SECRET: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": "x"}}


def name_of(ref: ResourceRef) -> ResourceName:
    return ResourceName(ref.group, ref.kind, ref.namespace, ref.name)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


Play = Callable[[Callable[[Owner], Awaitable[None]]], None]


@pytest.fixture
def play(folder: Path) -> Play:
    """Plays a scenario with a process that listens."""

    def play(scenario: Callable[[Owner], Awaitable[None]]) -> None:
        async def played() -> None:
            async with Owner(folder / "state.db").listening() as owner:
                await scenario(owner)

        asyncio.run(played())

    return play


# --- Declaring --------------------------------------------------------------------------------------------------------


def test_what_is_applied_is_on_record(play: Play) -> None:
    async def scenario(owner: Owner) -> None:
        await owner.apply(gadget("a", {"size": 1}), SECRET)

        assert [str(one.ref) for one in (await owner.store.list()).resources] == [
            "Secret default/s",
            "Gadget default/a",
        ]

    play(scenario)


def test_no_digit_of_a_number_is_lost_on_the_way(play: Play) -> None:
    async def scenario(owner: Owner) -> None:
        await owner.apply(gadget("a", {"size": 2**70 + 1}))

        found = await owner.store.get(A)
        assert found is not None
        assert found.spec == {"size": 2**70 + 1}

    play(scenario)


@pytest.mark.parametrize(
    ("manifest", "error", "message"),
    [
        (gadget("B_", {}), ManifestInvalid, "metadata.name cannot be 'B_'"),
        (gadget("b", {"parentRef": "a"}), DependencyCycle, "Gadget default/a needs Gadget default/b needs"),
        (gadget("a", {}), ManifestInvalid, "Gadget default/a is declared twice: keep one of them"),
        (
            {**gadget("b", {}), "kind": "Widget"},
            ManifestInvalid,
            "handles only Gadget; stop it, or start it with --kinds",
        ),
        ({"kind": "Gadget"}, ManifestInvalid, "apiVersion is missing"),
    ],
)
def test_all_is_taken_or_nothing_is(play: Play, manifest: Any, error: type[SetpointError], message: str) -> None:
    async def scenario(owner: Owner) -> None:
        found = await owner.refused(owner.apply(gadget("a", {"parentRef": "b"}), manifest))

        assert type(found) is error
        assert message in str(found)

    play(scenario)


@pytest.mark.parametrize("size", [1, 2], ids=["as it was", "otherwise"])
def test_what_is_being_deleted_cannot_be_applied(play: Play, size: int) -> None:
    async def scenario(owner: Owner) -> None:
        await owner.store.set_finalizers(await owner.store.apply(gadget("a", {"size": 1})), (FINALIZER,))
        # Leaves a request for a look in the annotations.
        await owner.apply(gadget("a", {"size": 1}))
        await owner.store.delete(A)

        found = await owner.refused(owner.apply(gadget("a", {"size": size})))

        assert type(found) is NotReady
        assert str(found) == "Gadget default/a is being deleted: wait until it is gone, then apply it again"

    play(scenario)


def test_an_apply_that_says_nothing_new_asks_for_a_look(play: Play) -> None:
    async def scenario(owner: Owner) -> None:
        await owner.apply(gadget("a", {"size": 1}), SECRET)
        first = await owner.request_of(A)
        await owner.apply(gadget("a", {"size": 1}), SECRET)

        assert first is None
        assert await owner.request_of(A) is not None
        assert await owner.request_of(ResourceRef("", "Secret", "default", "s")) is None

    play(scenario)


def test_an_edit_of_the_spec_needs_no_request(play: Play) -> None:
    async def scenario(owner: Owner) -> None:
        await owner.apply(gadget("a", {"size": 1}))
        await owner.apply(gadget("a", {"size": 2}))

        assert await owner.request_of(A) is None

    play(scenario)


def test_labels_and_the_request_for_a_look_at_them_are_one_write(play: Play) -> None:
    async def scenario(owner: Owner) -> None:
        await owner.apply(gadget("a", {"size": 1}))
        await owner.apply(gadget("a", {"size": 1}, labels={"team": "web"}, annotations=None))

        assert await owner.request_of(A) is not None
        assert (await owner.store.list()).revision == "2"

    play(scenario)


def test_how_something_goes_may_still_be_said_and_is_looked_at(play: Play) -> None:
    async def scenario(owner: Owner) -> None:
        resource = await owner.store.apply(gadget("a", {"size": 1}))
        await owner.store.set_finalizers(resource, (FINALIZER,))
        await owner.store.delete(A)

        await owner.apply(gadget("a", {"size": 1}, annotations={"setpoint.dev/management": "full"}))
        unchanged = await owner.refused(
            owner.apply(gadget("a", {"size": 1}, annotations={"setpoint.dev/management": "full"}))
        )

        assert await owner.request_of(A) is not None
        assert type(unchanged) is NotReady

    play(scenario)


# --- Looks and deletions ----------------------------------------------------------------------------------------------


def test_no_two_requests_for_a_look_are_the_same(play: Play) -> None:
    async def scenario(owner: Owner) -> None:
        await owner.apply(gadget("a", {"size": 1}))
        await owner.daemon.reconcile([name_of(A)])
        first = await owner.request_of(A)
        await owner.daemon.reconcile([name_of(A)])

        assert None is not first != await owner.request_of(A)

    play(scenario)


def test_a_request_is_put_on_record_however_often_somebody_else_is_faster(play: Play) -> None:
    async def scenario(owner: Owner) -> None:
        await owner.apply(gadget("a", {"size": 1}))
        owner.store.conflicts = 10

        await owner.daemon.reconcile([name_of(A)])

        assert await owner.request_of(A) is not None

    play(scenario)


def test_a_look_at_what_is_not_there_is_no_error(play: Play) -> None:
    async def scenario(owner: Owner) -> None:
        await owner.daemon.reconcile([name_of(A)])

        assert (await owner.store.list()).resources == ()

    play(scenario)


def test_what_is_deleted_is_gone_or_marked(play: Play) -> None:
    async def scenario(owner: Owner) -> None:
        resource = await owner.store.apply(gadget("a", {}))
        await owner.store.set_finalizers(resource, (FINALIZER,))
        await owner.store.apply(gadget("b", {}))

        await owner.daemon.delete([name_of(A), name_of(B), name_of(gadget_ref("nowhere"))])

        assert [(one.ref, one.is_deleting) for one in (await owner.store.list()).resources] == [(A, True)]
        assert await owner.request_of(A) is None

    play(scenario)


def test_another_look_is_asked_for_at_what_is_being_deleted_already(play: Play) -> None:
    async def scenario(owner: Owner) -> None:
        resource = await owner.store.apply(gadget("a", {}))
        await owner.store.set_finalizers(resource, (FINALIZER,))
        await owner.daemon.delete([name_of(A)])

        await owner.daemon.delete([name_of(A)])

        assert await owner.request_of(A) is not None

    play(scenario)


def test_a_look_is_asked_for_at_what_was_paused_and_is_to_go(play: Play) -> None:
    async def scenario(owner: Owner) -> None:
        resource = await owner.store.apply(gadget("a", {}))
        held = await owner.store.set_finalizers(resource, (FINALIZER,))
        assert held is not None
        await owner.store.update_status(held, PAUSED)

        await owner.daemon.delete([name_of(A)])

        assert await owner.request_of(A) is not None

    play(scenario)


@pytest.mark.parametrize("verb", ["delete", "reconcile"])
def test_a_kind_that_the_process_does_not_handle_is_refused(play: Play, verb: str) -> None:
    async def scenario(owner: Owner) -> None:
        asking = getattr(owner.daemon, verb)([ResourceName(GROUP, "Widget", "default", "w")])

        assert type(await owner.refused(asking)) is ManifestInvalid

    play(scenario)


@pytest.mark.parametrize("phase", [Phase.DRAINING, Phase.ENDED])
def test_a_process_that_is_stopping_takes_no_orders(play: Play, phase: Phase) -> None:
    async def scenario(owner: Owner) -> None:
        owner.phase = phase

        for asking in (owner.apply(gadget("a", {})), owner.daemon.delete([name_of(A)]), owner.daemon.reconcile([])):
            found = await owner.refused(asking)
            assert type(found) is StoreInUse
            assert str(found) == f"process {os.getpid()} is stopping: run the command again when it has ended"

    play(scenario)


# --- Errors -----------------------------------------------------------------------------------------------------------


def test_a_mistake_of_ours_is_told_without_its_text(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(owner: Owner) -> None:
        owner.store.secret = "the password is x"

        found = await owner.refused(owner.apply(gadget("a", {})))

        assert type(found) is Bug
        assert str(found) == "ValueError in the running process: a bug of ours; its log has the traceback"

    play(scenario)
    assert "the password is x" in caplog.text


def test_words_that_nobody_understands_are_refused(play: Play) -> None:
    async def scenario(owner: Owner) -> None:
        connector = aiohttp.UnixConnector(str(owner.path) + ".sock")
        async with (
            aiohttp.ClientSession("http://setpoint", connector=connector) as session,
            session.post("/v1/apply", data=b'{"manifests": 7}') as response,
        ):
            answer = await response.json()

        assert (response.status, answer["error"]) == (422, "ManifestInvalid")

    play(scenario)


# --- The end ----------------------------------------------------------------------------------------------------------


def test_whoever_waits_for_the_end_hears_of_it(folder: Path) -> None:
    async def scenario() -> None:
        async with Owner(folder / "state.db").listening() as owner:
            waiting = asyncio.create_task(owner.daemon.wait_until_exit())
            await owner.daemon.hello()
            assert not waiting.done()
        await waiting

    asyncio.run(scenario())


def test_a_process_that_is_gone_is_not_reached(folder: Path) -> None:
    async def scenario() -> None:
        async with Owner(folder / "state.db").listening() as owner:
            other = AdminClient(socket_link(owner.path))
        with pytest.raises(RemoteUnavailable):
            await other.hello()
        await other.wait_until_exit()
        await other.close()

        assert await connect_admin(owner.path) is None

    asyncio.run(scenario())


# --- Who may ask ------------------------------------------------------------------------------------------------------


def test_the_socket_is_its_owners_alone_and_goes_with_the_process(folder: Path) -> None:
    async def scenario() -> int:
        async with Owner(folder / "state.db").listening() as owner:
            return stat.S_IMODE(socket_link(owner.path).stat().st_mode)

    assert asyncio.run(scenario()) == 0o600
    assert [one.name for one in folder.iterdir()] == ["state.db"]


NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")


ASK = f"""
import os, socket, sys
os.setuid({NOBODY})
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
client.sendall(b"GET /v1/hello HTTP/1.0\\r\\n\\r\\n")
print(client.makefile().read())
"""


@needs_root
def test_another_user_gets_no_answer_even_where_the_file_would_let_them(play: Play) -> None:
    async def scenario(owner: Owner) -> None:
        owner.path.parent.chmod(0o755)
        address = socket_link(owner.path)
        address.chmod(0o666)
        command = [sys.executable, "-c", ASK, str(address)]

        asked = await asyncio.to_thread(
            lambda: subprocess.run(command, capture_output=True, check=True, encoding="utf-8")
        )

        assert (
            f"process {os.getpid()} belongs to another user: run the command as that user, or as root" in asked.stdout
        )

    play(scenario)
