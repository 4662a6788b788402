"""The contract as pytest sees it, the harness for other tests, and the names of the package."""

import asyncio
import inspect
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from setpoint import kind, testing
from setpoint.core.plan import Action
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Gone, Settled
from setpoint.testing import (
    CallFault,
    ContractHarness,
    Interruption,
    KindContract,
    KindFixture,
    Part,
    after_any_await,
    contract_harness,
    engine_harness,
    interrupted,
)
from setpoint.testing.claims.claim import LifecycleClaim
from setpoint.testing.contract import CLAIMS
from setpoint.testing.kind_parts import PART_MEMBERS
from tests.engine.owners.website import WebsiteOwner
from tests.testing.toy_library.book_fixture import NAME, BookFixture
from tests.testing.toy_library.library import THE_LIBRARY, BookKind, Library, LibraryClient, LibraryError


class SilentFixture(BookFixture):
    """A fixture whose author forgot to say that a book has no labels."""

    without: ClassVar = {Part.OPERATIONS: "the library answers when it is done"}


class TwoMindedFixture(BookFixture):
    """A fixture that has a part, and says that the kind lacks it."""

    without: ClassVar = {**BookFixture.without, Part.SECRET: "nothing is secret"}


def _contract(fixture: type[KindFixture]) -> type[KindContract]:
    return type("Contract", (KindContract,), {"fixture": fixture})


def _claim(name: str) -> LifecycleClaim:
    return next(claim for claim in CLAIMS if claim.name == name)


def _require_whole(fixture: type[KindFixture]) -> None:
    _contract(fixture)().test_the_fixture_has_each_part_or_says_why_the_kind_lacks_it()


def test_a_part_that_a_fixture_does_not_mention_is_named_with_what_to_do() -> None:
    with pytest.raises(AssertionError) as raised:
        _require_whole(SilentFixture)

    assert (
        "SilentFixture neither defines 'labels_member' nor lists Part.LABELS in `without`: define it, or say there why "
        "the kind lacks it"
    ) in str(raised.value)
    assert "labels are part of the intent" not in {case.name for case in _contract(SilentFixture).cases()}


def test_a_part_that_a_fixture_has_and_lists_as_lacking_is_named() -> None:
    with pytest.raises(AssertionError, match=r"TwoMindedFixture defines 'with_secret', and lists Part.SECRET all the"):
        _require_whole(TwoMindedFixture)


def test_a_fixture_that_says_everything_is_whole() -> None:
    _require_whole(BookFixture)


def test_each_part_that_the_kind_does_not_tell_has_a_member_of_the_fixture() -> None:
    told = {Part.ADOPTION, Part.BULK_OBSERVE, Part.CONTEXT, Part.COOKIE, Part.FORMER, Part.LIST, Part.STATELESS}

    assert set(PART_MEMBERS) == set(Part) - told
    assert [
        member for member in PART_MEMBERS.values() if member not in (*KindFixture.__annotations__, *dir(KindFixture))
    ] == []


def test_what_a_kind_lacks_implies_what_it_cannot_have_without_it() -> None:
    assert BookFixture.lacking()[Part.SLOW_CREATE] == BookFixture.without[Part.OPERATIONS]


def test_a_fixture_without_verbs_or_calls_of_its_own_says_what_to_do() -> None:
    class Uncounted(BookFixture):
        verbs = None

        def open_client(self) -> object:
            return object()

        def new_kind(self, client: Any) -> Any:
            return BookKind(kind.KindContext())

    async def play() -> None:
        async with contract_harness(Uncounted()) as harness:
            await harness.fail_next_calls(CallFault.CUT)

    with pytest.raises(AssertionError, match="Uncounted has no `verbs`, and does not define `fail_next_calls`"):
        asyncio.run(play())


def test_what_the_kind_itself_tells_cannot_be_listed_as_lacking(tmp_path: Path) -> None:
    class Forgetful(BookFixture):
        without: ClassVar = {**BookFixture.without, Part.COOKIE: "it compares every time"}

    contract = _contract(Forgetful)()

    with pytest.raises(AssertionError, match=r"Forgetful lists .*COOKIE.* in `without`, and Book has it: remove it"):
        contract.test_lifecycle(_claim("creates then rests"), Forgetful, tmp_path)


def test_the_contract_can_be_tried_on_another_store(tmp_path: Path) -> None:
    class OnSqlite(KindContract):
        fixture = BookFixture

        def harness(self, fixture: KindFixture, folder: Path) -> AbstractAsyncContextManager[ContractHarness]:
            return contract_harness(fixture, folder / "state.db")

    OnSqlite().test_lifecycle(_claim("an oscillation survives a restart"), BookFixture, tmp_path)

    assert (tmp_path / "1" / "state.db").exists()


class DirectBookKind(BookKind):
    """A kind that is made with its client, and knows no context."""

    def __init__(self, client: LibraryClient) -> None:
        super().__init__(kind.KindContext())
        self.client = client

    async def call(self, method: str, *arguments: object) -> Any:
        try:
            return await getattr(self.client, method)(*arguments)
        except LibraryError as error:
            raise self.translated(error) from error


class DirectFixture(BookFixture):
    """The fixture of such a kind: it opens the client, and makes the kind over what it is given."""

    def open_client(self) -> LibraryClient:
        return LibraryClient(self.library)

    def new_kind(self, client: Any) -> DirectBookKind:
        return DirectBookKind(client)


@pytest.mark.parametrize(
    "name",
    [
        "creates then rests",
        "an outage is not absence and no failure",
        "a create whose answer was lost is not sent twice",
        "a residual in a specified field is not converged and not fought",
        "killed after any await, creating at once, it ends with one object or none",
        "after any await, the next call has the fault CONFLICT: it ends as declared",
    ],
)
def test_a_kind_that_is_made_with_its_client_runs_the_same_contract(name: str, tmp_path: Path) -> None:
    _contract(DirectFixture)().test_lifecycle(_claim(name), DirectFixture, tmp_path)


# --- The harness -----------------------------------------------------------------------------------------------------


def _book(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "library.example/v1", "kind": "Book", "metadata": {"name": name}, "spec": spec}


def test_the_harness_applies_plans_steps_reads_and_deletes() -> None:
    library = THE_LIBRARY[0] = Library()

    async def play() -> None:
        async with engine_harness(BookKind) as harness:
            ref = (await harness.apply(_book("omoo", pages=1))).ref
            first = await harness.plan(ref)
            assert ([write.action for write in first.writes], library.books) == ([Action.CREATE], {})
            assert isinstance(await harness.step(ref), Settled)
            assert library.books == {"omoo": {"serial": "1", "pages": 1, "binding": "paper"}}
            assert (await harness.resource(ref)).status["serial"] == "1"
            assert (await harness.ready(ref))[:2] == ("True", "UpToDate")
            assert [event.reason for event in await harness.events(ref)] == ["Created"]
            await harness.secret("s", {"password": "open sesame"})
            source = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}}
            await harness.settle(_book("omoo", pages=2, password=source))
            assert (library.books["omoo"]["pages"], library.passwords) == (2, {"omoo": "open sesame"})
            await harness.delete(ref)
            assert await harness.go_on(ref) == Gone()
            assert (await harness.is_gone(ref), library.books) == (True, {})

    asyncio.run(play())


def test_several_plans_take_one_observation_together() -> None:
    library = THE_LIBRARY[0] = Library()

    async def play() -> tuple[list[int], list[str]]:
        fixture = BookFixture()
        async with contract_harness(fixture) as harness:
            refs = [(await harness.base.apply(_book(f"volume-{number}", pages=1))).ref for number in range(12)]
            plans = await harness.base.plans(refs)
            return [len(plan.writes) for plan in plans.values()], harness.calls

    assert asyncio.run(play()) == ([1] * 12, ["get"])
    assert library.books == {}


def test_the_harness_takes_owners_as_well() -> None:
    async def play() -> Any:
        owner = WebsiteOwner()
        async with engine_harness(owner) as harness:
            manifest = {
                "apiVersion": f"{owner.group}/{owner.version}",
                "kind": owner.name,
                "metadata": {"name": "shop"},
                "spec": {"title": "The shop"},
            }
            ref = (await harness.apply(manifest)).ref
            await harness.step(ref)
            return (await harness.resource(ResourceRef("", "ConfigMap", "default", "shop-page"))).document["data"]

    assert asyncio.run(play())["title"] == "The shop"


def test_time_passes_by_steps_alone() -> None:
    async def play() -> tuple[float, float]:
        async with contract_harness(BookFixture()) as harness:
            await harness.settle()
            before = harness.clock.seconds
            await harness.step()
            return before, harness.clock.seconds

    assert asyncio.run(play()) == (1, 2)


def test_a_fixture_goes_to_the_service_past_the_faults_of_the_kind() -> None:
    async def play() -> tuple[list[str], list[str]]:
        async with contract_harness(BookFixture()) as harness:
            await harness.fail_next_calls(CallFault.UNAVAILABLE)
            await harness.create_outside(7)
            return await harness.objects(), harness.calls

    assert asyncio.run(play()) == ([NAME], [])


def test_an_author_can_let_anything_happen_after_each_await_of_a_step() -> None:
    """As the contract does: here the library burns down, and the book is written anew."""

    async def burns_after(awaits: int) -> bool:
        async with contract_harness(BookFixture()) as harness:

            async def burn() -> None:
                THE_LIBRARY[0].books.clear()

            await harness.settle()
            await harness.change()
            interruption = Interruption(awaits, burn)
            await interrupted(harness, interruption).step()
            await harness.go_on()
            await harness.go_on()
            assert THE_LIBRARY[0].books == {NAME: {"serial": "1", "pages": 200, "binding": "paper"}}
            return interruption.has_happened

    asyncio.run(after_any_await(burns_after, least=6))


# --- The names -------------------------------------------------------------------------------------------------------


def test_every_public_name_is_there_and_has_a_docstring() -> None:
    assert list(testing.__all__) == sorted(testing.__all__)
    assert [
        name
        for name in testing.__all__
        if name not in ("Spec", "VerbOf") and not inspect.getdoc(getattr(testing, name))
    ] == []


def test_every_member_that_an_author_may_write_has_a_docstring() -> None:
    members = inspect.getmembers(KindFixture, lambda one: inspect.isfunction(one) or isinstance(one, property))

    assert [name for name, one in members if not name.startswith("_") and not inspect.getdoc(one)] == []


@pytest.mark.slow
def test_nothing_of_it_is_imported_by_the_product() -> None:
    script = "import sys, setpoint.cli.main, setpoint.app, setpoint.kind; assert 'setpoint.testing' not in sys.modules"

    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.slow
def test_without_pytest_it_says_what_to_install() -> None:
    script = "import sys; sys.modules['pytest'] = None; import setpoint.testing"
    ended = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)

    assert ended.stderr.endswith("ImportError: setpoint.testing needs pytest: pip install 'setpoint[testing]'\n")
