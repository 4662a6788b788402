"""The memory of Python's frames, kept through a run: a plugin of pytest.

CPython takes it in chunks of 16 KiB, and gives a chunk back as soon as its last frame ends. When the hot call of a test
happens to be where a chunk ends, each call takes memory from the system and gives it back, and the test takes several
times as long. So all tests run inside of one call whose frame is so large that its chunk holds theirs, too.
"""

from collections.abc import Callable
from typing import Final

import pytest

# In words: the chunk is the next power of two, twice as large. What is not used of it takes address space alone.
_LARGE: Final = 1 << 17


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> object:
    """Runs the tests as they would be run without this plugin, in frames of one chunk."""
    plugins = session.config.pluginmanager
    this = plugins.get_plugin(__name__)
    return _in_one_chunk(plugins.subset_hook_caller("pytest_runtestloop", [this]), session)


def _in_one_chunk(run: Callable[..., object], session: pytest.Session) -> object:
    return run(session=session)


_in_one_chunk.__code__ = _in_one_chunk.__code__.replace(co_stacksize=_LARGE)
