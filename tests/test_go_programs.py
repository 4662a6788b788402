"""Programs that are built with Go: once, from the source that is there, and with a reason where that fails."""

from pathlib import Path

import pytest

from tests.go_programs import GoProgram, NotBuilt, cache_folder, source_digest

BUILD = """#!/bin/sh
case "$1" in
mod) echo '{"Dir": "'"$MODULE"'"}' ;;
build) echo "$PWD $5" > "$4" ;;
esac
"""


def fake_go(folder: Path, script: str) -> dict[str, str]:
    """An environment in which `go` is a script."""
    go = folder / "bin" / "go"
    go.parent.mkdir()
    go.write_text(script, encoding="utf-8")
    go.chmod(0o755)
    return {"PATH": str(go.parent), "XDG_CACHE_HOME": str(folder / "cache"), "MODULE": str(folder)}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with the source of a program."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "main.go").write_text("package main", encoding="utf-8")
    return folder


def test_a_program_is_built_in_the_folder_of_its_source(source: Path, tmp_path: Path) -> None:
    environment, program = fake_go(tmp_path, BUILD), GoProgram("a program", "server", source)

    built = program.built(environment)

    assert built == program.path(environment)
    assert built.read_text(encoding="utf-8") == f"{source} .\n"


def test_a_published_module_is_downloaded_first(tmp_path: Path) -> None:
    environment = fake_go(tmp_path, BUILD)

    built = GoProgram("a program", "server", "example.com/server@v1.2.3", "./cmd/server").built(environment)

    assert built.parent.name.startswith("v1.2.3-")
    assert built.read_text(encoding="utf-8") == f"{tmp_path} ./cmd/server\n"


def test_a_program_that_was_built_from_this_source_is_used_again(source: Path, tmp_path: Path) -> None:
    environment, program, said = fake_go(tmp_path, BUILD), GoProgram("a program", "server", source), list[str]()

    first, second = program.built(environment, said.append), program.built({**environment, "PATH": ""}, said.append)

    assert first == second
    assert said == ["Building a program, once: some minutes"]


def test_without_go_the_reason_is_said(source: Path, tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}

    with pytest.raises(NotBuilt, match=r"^there is no Go on the PATH to build a program with$"):
        GoProgram("a program", "server", source).built(environment)


def test_a_build_that_fails_says_what_go_said_and_leaves_no_program(source: Path, tmp_path: Path) -> None:
    environment = fake_go(tmp_path, "#!/bin/sh\necho half > \"$4\"\necho 'no such module' >&2\nexit 1\n")
    program = GoProgram("a program", "server", source)

    with pytest.raises(NotBuilt, match=r"^a program cannot be built: go build said: no such module$"):
        program.built(environment)

    assert not program.path(environment).exists()


def test_any_change_of_the_source_is_another_program(source: Path) -> None:
    before = source_digest(source)
    (source / "go.sum").write_text("", encoding="utf-8")

    assert source_digest(source) != before


@pytest.mark.parametrize("environment", [{}, {"XDG_CACHE_HOME": ""}])
def test_what_was_built_is_kept_in_the_user_s_cache(environment: dict[str, str]) -> None:
    assert cache_folder(environment) == Path.home() / ".cache" / "setpoint"
