"""Folders and git repositories as sources: what is read, what is refused, and that nothing of a repository runs."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from setpoint.errors import ManifestInvalid, NotReady
from setpoint.library.sets import snapshot as snapshots
from setpoint.library.sets.folder_source import FolderSource
from setpoint.library.sets.git_source import GitSource
from setpoint.library.sets.snapshot import Snapshot, Source
from tests.library.sets.worlds import secret


def _read(source: Source) -> Snapshot:
    async def read() -> Snapshot:
        return await source.snapshot(await source.look())

    return asyncio.run(read())


def _paths(source: Source) -> list[str]:
    return [one.path for one in _read(source).files]


def _write(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(secret("a"))


def _git(folder: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always")
    command = ["git", *settings, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit: `a.yaml`, and `prod/b.yaml`."""
    folder = tmp_path / "infra"
    _write(folder, "a.yaml", "prod/b.yaml")
    _git(folder, "init", "-q", "-b", "main", ".")
    return _commit(folder)


def _commit(folder: Path) -> Path:
    _git(folder, "add", "-A")
    _git(folder, "commit", "-q", "-m", "change")
    return folder


# --- Folders ----------------------------------------------------------------------------------------------------------


def test_hidden_files_and_folders_are_not_read(tmp_path: Path) -> None:
    _write(tmp_path, "a.yaml", "b/c.yml", "b/d.json", ".git/x.yaml", "b/.x.yaml", "README.md")
    (tmp_path / ".#a.yaml").symlink_to("nowhere")

    assert _paths(FolderSource(tmp_path)) == ["a.yaml", "b/c.yml", "b/d.json"]


def test_the_revision_is_that_of_names_and_contents(tmp_path: Path) -> None:
    _write(tmp_path, "a.yaml")
    first = _read(FolderSource(tmp_path)).revision
    os.utime(tmp_path / "a.yaml", (1, 1))
    touched = _read(FolderSource(tmp_path)).revision
    (tmp_path / "a.yaml").rename(tmp_path / "b.yaml")

    assert touched == first
    assert _read(FolderSource(tmp_path)).revision != first


def test_a_folder_that_changes_while_it_is_read_is_not_ready(tmp_path: Path) -> None:
    _write(tmp_path, "a.yaml")
    source = FolderSource(tmp_path)
    seen = asyncio.run(source.look())
    _write(tmp_path, "b.yaml")

    with pytest.raises(NotReady, match="is being written"):
        asyncio.run(source.snapshot(seen))


def test_a_link_inside_of_the_folder_is_followed_as_a_mounted_volume_has_them(tmp_path: Path) -> None:
    _write(tmp_path, "..2026/a.yaml")
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")

    assert _paths(FolderSource(tmp_path)) == ["a.yaml"]


@pytest.mark.parametrize("target", ["outside.yaml", "outside"])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, target: str) -> None:
    _write(tmp_path, "outside.yaml", "outside/x.yaml", "in/a.yaml")
    (tmp_path / "in" / f"link{Path(target).suffix}").symlink_to(tmp_path / target)

    with pytest.raises(ManifestInvalid, match=r"link.*leads out of the folder"):
        _read(FolderSource(tmp_path / "in"))


def test_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("nowhere.yaml")

    with pytest.raises(ManifestInvalid, match=r"a\.yaml: this link leads nowhere"):
        _read(FolderSource(tmp_path))


def test_an_empty_file_is_taken_for_one_that_is_being_written(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").touch()

    with pytest.raises(ManifestInvalid, match=r"a\.yaml: this file is empty, as if it were being written"):
        _read(FolderSource(tmp_path))


def test_a_pipe_is_refused_without_being_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")

    with pytest.raises(ManifestInvalid, match=r"a\.yaml: this is no file"):
        _read(FolderSource(tmp_path))


def test_a_folder_that_vanished_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ManifestInvalid, match="there is no such folder: what was declared from there stands"):
        _read(FolderSource(tmp_path / "gone"))


@pytest.mark.parametrize("limit", ["MAX_FILES", "MAX_FILE_BYTES", "MAX_BYTES"])
def test_a_snapshot_has_limits(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(snapshots, limit, 1)

    for source in (FolderSource(repository), GitSource(repository)):
        with pytest.raises(ManifestInvalid, match="split it"):
            _read(source)


def test_no_manifest_is_a_mistake_unless_it_is_allowed(tmp_path: Path) -> None:
    found = _read(FolderSource(tmp_path))

    with pytest.raises(ManifestInvalid, match="--allow-empty prunes all of the set"):
        found.manifests("default", allow_empty=False)
    assert found.manifests("default", allow_empty=True).manifests == ()


def test_what_is_no_text_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"kind: a\nname: \xff\n")

    with pytest.raises(ManifestInvalid, match=r"a\.yaml:2: this is not UTF-8 text"):
        _read(FolderSource(tmp_path)).manifests("default", allow_empty=False)


# --- Repositories -----------------------------------------------------------------------------------------------------


def test_a_commit_is_read_and_never_the_work_tree(repository: Path) -> None:
    _write(repository, "a.yaml", "uncommitted.yaml")
    (repository / "a.yaml").write_text("changed\n")

    found = _read(GitSource(repository))

    assert found.revision == _git(repository, "rev-parse", "HEAD")
    assert [(one.path, one.data.decode()) for one in found.files] == [
        ("a.yaml", secret("a")),
        ("prod/b.yaml", secret("a")),
    ]


def test_a_folder_of_a_commit_has_paths_from_the_root_of_the_repository(repository: Path) -> None:
    assert _paths(GitSource.parse(f"{repository}@main:prod")) == ["prod/b.yaml"]


def test_a_bare_repository_a_branch_and_a_tag_can_be_named(repository: Path, tmp_path: Path) -> None:
    _git(repository, "tag", "v1")
    _git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")

    for ref in ("main", "v1", "HEAD", _git(repository, "rev-parse", "HEAD")):
        assert _paths(GitSource.parse(f"{tmp_path}/bare.git@{ref}")) == ["a.yaml", "prod/b.yaml"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}@nothing", "no branch, tag or commit is called nothing: what was declared from it stands"),
        ("{}@main:nothing", "the folder nothing is not in the commit"),
        ("{}/prod", "not a git repository"),
        ("{}@main:../x", "write PATH, PATH@REF or PATH@REF:FOLDER"),
        ("{}@--help", "write PATH, PATH@REF or PATH@REF:FOLDER"),
        ("/nothing/here", "write PATH, PATH@REF or PATH@REF:FOLDER"),
        ("/nothing/here@main", "there is no such repository"),
    ],
)
def test_what_cannot_be_read_says_why(repository: Path, text: str, message: str) -> None:
    with pytest.raises(ManifestInvalid, match=message):
        _read(GitSource.parse(text.format(repository)))


def test_a_repository_without_a_commit_says_so(tmp_path: Path) -> None:
    _git(tmp_path, "init", "-q", "-b", "main", "new")

    with pytest.raises(ManifestInvalid, match="there is no commit yet: what was declared from it stands"):
        _read(GitSource(tmp_path / "new"))


def test_an_object_that_is_missing_is_named_where_it_is_needed(repository: Path) -> None:
    (repository / "README.md").write_text("about")
    _commit(repository)

    def remove(path: str) -> str:
        oid = _git(repository, "rev-parse", f"HEAD:{path}")
        (repository / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
        return oid

    remove("README.md")
    assert _paths(GitSource(repository)) == ["a.yaml", "prod/b.yaml"]
    oid = remove("a.yaml")
    with pytest.raises(ManifestInvalid, match=rf"infra: the object {oid} is missing: check it with `git fsck`"):
        _read(GitSource(repository))


def test_a_file_that_is_too_large_is_named_from_the_root(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "MAX_FILE_BYTES", 10)

    with pytest.raises(ManifestInvalid, match=r"^prod/b\.yaml: larger than"):
        _read(GitSource(repository, folder="prod"))


def test_without_git_the_error_names_the_program(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(ManifestInvalid, match="needs the program git, and there is none on the PATH"):
        _read(GitSource(repository))


def test_nothing_of_the_repository_runs(repository: Path, tmp_path: Path) -> None:
    mark, script = tmp_path / "mark", tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    script.chmod(0o755)
    (repository / ".gitattributes").write_text("*.yaml filter=run diff=run\n")
    _commit(repository)
    for name in ("core.fsmonitor", "filter.run.smudge", "diff.run.textconv", "core.sshCommand", "core.pager"):
        _git(repository, "config", name, str(script))
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        (repository / ".git" / "hooks" / hook).write_text(script.read_text())
        (repository / ".git" / "hooks" / hook).chmod(0o755)
    mark.unlink(missing_ok=True)

    assert _paths(GitSource(repository)) == ["a.yaml", "prod/b.yaml"]
    assert not mark.exists()


def test_a_submodule_is_ignored_and_said(repository: Path, tmp_path: Path) -> None:
    _git(tmp_path, "clone", "-q", str(repository), "part")
    _git(repository, "submodule", "--quiet", "add", str(tmp_path / "part"), "part")
    _commit(repository)

    found = _read(GitSource(repository))

    assert found.ignored == ("submodule part",)
    assert [one.path for one in found.files] == ["a.yaml", "prod/b.yaml"]


def test_a_link_of_a_commit_is_followed_inside_of_it_alone(repository: Path) -> None:
    (repository / "prod" / "link.yaml").symlink_to("../a.yaml")
    _commit(repository)
    assert _paths(GitSource(repository)) == ["a.yaml", "prod/b.yaml", "prod/link.yaml"]

    with pytest.raises(ManifestInvalid, match=r"^prod/link\.yaml: this link leads out of the folder"):
        _read(GitSource(repository, folder="prod"))


def test_a_name_that_is_no_text_is_refused(repository: Path) -> None:
    Path(os.fsdecode(os.fsencode(repository) + b"/\xff.yaml")).write_text(secret("a"))
    _commit(repository)

    with pytest.raises(ManifestInvalid, match="the name of this file is not UTF-8"):
        _read(GitSource(repository))
