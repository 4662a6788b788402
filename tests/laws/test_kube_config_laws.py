"""Several kubeconfig files together: the first that defines a name defines all of it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.kubernetes.kubeconfig import load_files

pytestmark = pytest.mark.laws

NAMES = st.sampled_from(["red", "green", "blue"])
SERVERS = st.dictionaries(NAMES, st.sampled_from(["https://a", "https://b", ""]), max_size=2)
TOKENS = st.dictionaries(NAMES, st.sampled_from(["one", "two", ""]), max_size=2)
FILES = st.lists(st.tuples(st.one_of(st.just(""), NAMES), SERVERS, TOKENS), max_size=3)
File = tuple[str, dict[str, str], dict[str, str]]


def content(file: File) -> dict[str, Any]:
    current, servers, tokens = file
    return {
        "current-context": current,
        "clusters": [{"name": name, "cluster": {"server": server}} for name, server in servers.items()],
        "users": [{"name": name, "user": {"token": token}} for name, token in tokens.items()],
    }


@contextmanager
def written(files: list[File]) -> Iterator[list[Path]]:
    """The paths of these files."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder, str(number)) for number in range(len(files))]
        for path, file in zip(paths, files, strict=True):
            path.write_text(json.dumps(content(file)), encoding="utf-8")
        yield paths


@given(FILES)
def test_the_first_file_that_defines_a_name_defines_all_of_it(files: list[File]) -> None:
    with written(files) as paths:
        found = load_files(paths)

    assert found.current_context == next((current for current, _, _ in files if current), "")
    for name in ("red", "green", "blue"):
        with_cluster = [number for number, file in enumerate(files) if name in file[1]]
        with_user = [number for number, file in enumerate(files) if name in file[2]]
        assert (name in found.clusters, name in found.users) == (bool(with_cluster), bool(with_user))
        if with_cluster:
            first = with_cluster[0]
            assert found.clusters[name].file == paths[first]
            assert found.clusters[name].value.server == files[first][1][name]
        if with_user:
            assert found.users[name].value.token == files[with_user[0]][2][name]


@given(FILES, st.integers(0, 3))
def test_naming_a_file_twice_changes_nothing(files: list[File], again: int) -> None:
    with written(files) as paths:
        once = load_files(paths)
        twice = load_files([*paths, *paths[again:], Path("no-such-file")])

    assert (twice.clusters, twice.users, twice.current_context) == (once.clusters, once.users, once.current_context)
