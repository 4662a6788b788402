"""Calls of tests take no memory from the system, at whatever depth they are made."""

import resource

# More than one chunk of frames is deep.
_DEPTHS = 600
_CALLS = 200


def test_no_depth_of_calls_takes_memory_anew_with_each_call() -> None:
    _page_faults(_DEPTHS)
    most = max(_page_faults(_DEPTHS))

    assert most < _CALLS


def _page_faults(depths: int) -> list[int]:
    """The page faults of `_CALLS` calls at each depth."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(_CALLS):
        _nothing(0, 0, 0, 0)
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return [taken, *(_page_faults(depths - 1) if depths else [])]


def _nothing(first: int, second: int, third: int, fourth: int) -> None:
    """A call with a frame as large as that of `_page_faults`, or larger."""
