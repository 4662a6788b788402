"""One step is enough: what has to be true after it, however it ended.

A step is taken until there is nothing to wait for. Then either everything is as declared, and the next step finds
nothing to do; or it is refused, with a message in the status:

* by the kind: nothing was written, and nothing is written by the next step either;
* by the service: what was written before that is done. The next step sends the refused write again, and of the
  other writes only those that cannot be read back: a password.
"""

from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.errors import RemoteRefused, SetpointError, UserError
from tests.laws.google.cases import Case
from tests.laws.google.cloud_harness import authored


async def step_and_check(case: Case) -> str:
    """Runs the step, and asserts that the next one has nothing to do. How it ended."""
    harness, ref = case.harness, (await case.harness.store.apply(case.manifest)).ref
    written = authored(await harness.resource(ref))
    outcome = await harness.step_until_done(ref)
    if case.is_clone:
        # A clone has the root password of its source until the first observation.
        outcome = await harness.step_until_done(ref)
    match outcome:
        case Settled():
            ending = await _is_settled(case)
        case Stopped(error=error):
            ending = await _is_refused(case, error)
        case _:
            raise AssertionError(outcome)
    assert authored(await harness.resource(ref)) == written
    return ending


async def _is_settled(case: Case) -> str:
    harness, ref = case.harness, case.fuzzed.ref
    written = harness.writes()
    assert (await harness.ready(ref))[:2] == ("True", "UpToDate")
    assert (await harness.plan(ref)).writes == ()
    assert isinstance(await harness.step_until_done(ref), Settled)
    assert harness.writes() == []
    return "created" if case.view is None else "changed" if written else "as declared"


async def _is_refused(case: Case, error: SetpointError) -> str:
    harness, ref = case.harness, case.fuzzed.ref
    assert isinstance(error, UserError | RemoteRefused)
    status, _, message = await harness.ready(ref)
    assert (status, str(error) in message) == ("False", True)
    first = harness.writes()
    again = await harness.step_until_done(ref)
    assert isinstance(again, Stopped)
    assert (type(again.error), str(again.error)) == (type(error), str(error))
    second = harness.writes()
    if isinstance(error, UserError):
        # The immutable fields of a clone are known only once it exists.
        assert (first == [] or case.is_clone, second) == (True, [])
        return "refused by the kind"
    assert [one for one in second if one not in first] == []
    return "refused by the service"
