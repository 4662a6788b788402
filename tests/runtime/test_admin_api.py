"""The admin API: a process stores the requests of other commands, over a socket that is private to its user."""

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
from tests.runtime.admin_api_harness import AdminApiProcess

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


Play = Callable[[Callable[[AdminApiProcess], Awaitable[None]]], None]


@pytest.fixture
def play(folder: Path) -> Play:
    """Plays a scenario with a process that serves the admin API."""

    def play(scenario: Callable[[AdminApiProcess], Awaitable[None]]) -> None:
        async def played() -> None:
            async with AdminApiProcess(folder / "state.db").serving() as process:
                await scenario(process)

        asyncio.run(played())

    return play


# --- Declaring --------------------------------------------------------------------------------------------------------


def test_an_applied_manifest_is_stored(play: Play) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        await process.apply(gadget("a", {"size": 1}), SECRET)

        assert [str(one.ref) for one in (await process.store.list()).resources] == [
            "Secret default/s",
            "Gadget default/a",
        ]

    play(scenario)


def test_large_integers_arrive_exactly(play: Play) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        await process.apply(gadget("a", {"size": 2**70 + 1}))

        found = await process.store.get(A)
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
def test_an_invalid_manifest_rejects_the_whole_request(
    play: Play, manifest: Any, error: type[SetpointError], message: str
) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        found = await process.refused(process.apply(gadget("a", {"parentRef": "b"}), manifest))

        assert type(found) is error
        assert message in str(found)

    play(scenario)


@pytest.mark.parametrize("size", [1, 2], ids=["unchanged", "changed"])
def test_a_resource_that_is_being_deleted_cannot_be_applied(play: Play, size: int) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        await process.store.set_finalizers(await process.store.apply(gadget("a", {"size": 1})), (FINALIZER,))
        # Leaves a reconcile request in the annotations.
        await process.apply(gadget("a", {"size": 1}))
        await process.store.delete(A)

        found = await process.refused(process.apply(gadget("a", {"size": size})))

        assert type(found) is NotReady
        assert str(found) == "Gadget default/a is being deleted: wait until it is gone, then apply it again"

    play(scenario)


def test_an_unchanged_apply_requests_a_reconcile(play: Play) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        await process.apply(gadget("a", {"size": 1}), SECRET)
        first = await process.request_of(A)
        await process.apply(gadget("a", {"size": 1}), SECRET)

        assert first is None
        assert await process.request_of(A) is not None
        assert await process.request_of(ResourceRef("", "Secret", "default", "s")) is None

    play(scenario)


def test_a_changed_spec_needs_no_reconcile_request(play: Play) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        await process.apply(gadget("a", {"size": 1}))
        await process.apply(gadget("a", {"size": 2}))

        assert await process.request_of(A) is None

    play(scenario)


def test_changed_labels_and_the_reconcile_request_are_one_write(play: Play) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        await process.apply(gadget("a", {"size": 1}))
        await process.apply(gadget("a", {"size": 1}, labels={"team": "web"}, annotations=None))

        assert await process.request_of(A) is not None
        assert (await process.store.list()).revision == "2"

    play(scenario)


def test_annotations_of_a_resource_that_is_being_deleted_may_change_and_it_is_reconciled(play: Play) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        resource = await process.store.apply(gadget("a", {"size": 1}))
        await process.store.set_finalizers(resource, (FINALIZER,))
        await process.store.delete(A)

        await process.apply(gadget("a", {"size": 1}, annotations={"setpoint.dev/management": "full"}))
        unchanged = await process.refused(
            process.apply(gadget("a", {"size": 1}, annotations={"setpoint.dev/management": "full"}))
        )

        assert await process.request_of(A) is not None
        assert type(unchanged) is NotReady

    play(scenario)


# --- Reconciles and deletions -----------------------------------------------------------------------------------------


def test_every_reconcile_request_is_unique(play: Play) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        await process.apply(gadget("a", {"size": 1}))
        await process.client.reconcile([name_of(A)])
        first = await process.request_of(A)
        await process.client.reconcile([name_of(A)])

        assert None is not first != await process.request_of(A)

    play(scenario)


def test_a_reconcile_request_is_retried_after_write_conflicts(play: Play) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        await process.apply(gadget("a", {"size": 1}))
        process.store.conflicts = 10

        await process.client.reconcile([name_of(A)])

        assert await process.request_of(A) is not None

    play(scenario)


def test_a_reconcile_of_an_absent_resource_is_no_error(play: Play) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        await process.client.reconcile([name_of(A)])

        assert (await process.store.list()).resources == ()

    play(scenario)


def test_a_deleted_resource_is_removed_or_marked_for_deletion(play: Play) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        resource = await process.store.apply(gadget("a", {}))
        await process.store.set_finalizers(resource, (FINALIZER,))
        await process.store.apply(gadget("b", {}))

        await process.client.delete([name_of(A), name_of(B), name_of(gadget_ref("nowhere"))])

        assert [(one.ref, one.is_deleting) for one in (await process.store.list()).resources] == [(A, True)]
        assert await process.request_of(A) is None

    play(scenario)


def test_a_second_deletion_requests_a_reconcile(play: Play) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        resource = await process.store.apply(gadget("a", {}))
        await process.store.set_finalizers(resource, (FINALIZER,))
        await process.client.delete([name_of(A)])

        await process.client.delete([name_of(A)])

        assert await process.request_of(A) is not None

    play(scenario)


def test_the_deletion_of_a_paused_resource_requests_a_reconcile(play: Play) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        resource = await process.store.apply(gadget("a", {}))
        held = await process.store.set_finalizers(resource, (FINALIZER,))
        assert held is not None
        await process.store.update_status(held, PAUSED)

        await process.client.delete([name_of(A)])

        assert await process.request_of(A) is not None

    play(scenario)


@pytest.mark.parametrize("verb", ["delete", "reconcile"])
def test_a_kind_without_a_controller_is_rejected(play: Play, verb: str) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        asking = getattr(process.client, verb)([ResourceName(GROUP, "Widget", "default", "w")])

        assert type(await process.refused(asking)) is ManifestInvalid

    play(scenario)


@pytest.mark.parametrize("phase", [Phase.DRAINING, Phase.ENDED])
def test_a_stopping_process_rejects_requests(play: Play, phase: Phase) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        process.phase = phase

        for asking in (
            process.apply(gadget("a", {})),
            process.client.delete([name_of(A)]),
            process.client.reconcile([]),
        ):
            found = await process.refused(asking)
            assert type(found) is StoreInUse
            assert str(found) == f"process {os.getpid()} is stopping: run the command again when it has ended"

    play(scenario)


# --- Errors -----------------------------------------------------------------------------------------------------------


def test_a_bug_is_reported_without_its_text(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        process.store.secret = "the password is x"

        found = await process.refused(process.apply(gadget("a", {})))

        assert type(found) is Bug
        assert str(found) == "ValueError in the running process: a bug of ours; its log has the traceback"

    play(scenario)
    assert "the password is x" in caplog.text


def test_an_invalid_body_is_rejected(play: Play) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        connector = aiohttp.UnixConnector(str(process.path) + ".sock")
        async with (
            aiohttp.ClientSession("http://setpoint", connector=connector) as session,
            session.post("/v1/apply", data=b'{"manifests": 7}') as response,
        ):
            answer = await response.json()

        assert (response.status, answer["error"]) == (422, "ManifestInvalid")

    play(scenario)


# --- The end ----------------------------------------------------------------------------------------------------------


def test_a_client_that_waits_for_the_exit_is_notified(folder: Path) -> None:
    async def scenario() -> None:
        async with AdminApiProcess(folder / "state.db").serving() as process:
            waiting = asyncio.create_task(process.client.wait_until_exit())
            await process.client.hello()
            assert not waiting.done()
        await waiting

    asyncio.run(scenario())


def test_an_ended_process_is_not_reached(folder: Path) -> None:
    async def scenario() -> None:
        async with AdminApiProcess(folder / "state.db").serving() as process:
            other = AdminClient(socket_link(process.path))
        with pytest.raises(RemoteUnavailable):
            await other.hello()
        await other.wait_until_exit()
        await other.close()

        assert await connect_admin(process.path) is None

    asyncio.run(scenario())


# --- Access -----------------------------------------------------------------------------------------------------------


def test_the_socket_is_private_and_removed_at_exit(folder: Path) -> None:
    async def scenario() -> int:
        async with AdminApiProcess(folder / "state.db").serving() as process:
            return stat.S_IMODE(socket_link(process.path).stat().st_mode)

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
def test_another_user_is_rejected_even_if_the_file_mode_allows_it(play: Play) -> None:
    async def scenario(process: AdminApiProcess) -> None:
        process.path.parent.chmod(0o755)
        address = socket_link(process.path)
        address.chmod(0o666)
        command = [sys.executable, "-c", ASK, str(address)]

        asked = await asyncio.to_thread(
            lambda: subprocess.run(command, capture_output=True, check=True, encoding="utf-8")
        )

        assert (
            f"process {os.getpid()} belongs to another user: run the command as that user, or as root" in asked.stdout
        )

    play(scenario)
