"""`setpoint terraform install` and `uninstall`: atomic writes of files in the user's home."""

import json
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from setpoint import __version__
from setpoint.cli.commands import terraform
from setpoint.cli.main import main
from setpoint.deployment.terraform_plugin import launcher, semantic_version

RELEASE = semantic_version(__version__)
LAYOUT = Path("registry.terraform.io", "setpoint", "setpoint", RELEASE, "linux_amd64")
FILE = f"terraform-provider-setpoint_v{RELEASE}"


@dataclass(frozen=True, slots=True)
class Home:
    """The user's home."""

    folder: Path

    @property
    def plugins(self) -> Path:
        """The plugin folder of Terraform."""
        return self.folder / ".terraform.d" / "plugins"

    @property
    def pointer(self) -> Path:
        """The file that names the program."""
        return self.folder / ".config" / "setpoint" / "terraform-provider-setpoint" / RELEASE

    def run(self, *arguments: str, **more: str) -> Result:
        """`setpoint terraform` with these arguments."""
        runner = CliRunner(env={"HOME": str(self.folder), "XDG_CONFIG_HOME": None, **more})
        return runner.invoke(main, ["terraform", *arguments], catch_exceptions=False)

    def written(self) -> dict[Path, tuple[int, int, int]]:
        """Which files and folders there are, and when each was last written; reading them changes nothing here."""
        found = {one: one.stat() for one in self.folder.rglob("*")}
        return {one: (stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns) for one, stat in found.items()}

    def files(self) -> dict[str, bytes]:
        """The contents of every file, by path."""
        return {str(one): one.read_bytes() for one in self.folder.rglob("*") if one.is_file()}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home(tmp_path)


def test_install_writes_eight_launchers_and_a_pointer(home: Home) -> None:
    result = home.run("install")

    assert result.exit_code == 0
    assert sorted({Path(one).name for one in home.files()}) == [RELEASE, FILE]
    assert len(home.files()) == 9
    assert (home.plugins / LAYOUT / FILE).read_text() == launcher()
    assert (home.plugins / LAYOUT / FILE).stat().st_mode & 0o777 == 0o755
    assert home.pointer.read_text() == f"{sysconfig.get_path('scripts')}/terraform-provider-setpoint\n"


def test_install_prints_the_required_providers_block(home: Home) -> None:
    assert home.run("install").stdout == (
        f"setpoint {RELEASE} is installed for Terraform and OpenTofu in {home.plugins}\n"
        "\n"
        "A configuration asks for it; terraform init, or tofu init, finds it then:\n"
        "\n"
        "terraform {\n"
        "  required_providers {\n"
        "    setpoint = {\n"
        '      source  = "setpoint/setpoint"\n'
        f'      version = "{RELEASE}"\n'
        "    }\n"
        "  }\n"
        "}\n"
    )


def test_installing_again_changes_nothing_and_says_so(home: Home) -> None:
    home.run("install")
    before = home.written()
    again = home.run("install")

    assert again.stdout.startswith(f"setpoint {RELEASE} was installed already, and nothing changed: for Terraform")
    assert home.written() == before


def test_the_json_output_has_the_change_of_every_file(home: Home) -> None:
    home.run("install")
    (home.plugins / LAYOUT / FILE).write_text("something else")
    (home.plugins / LAYOUT).with_name("linux_arm64").joinpath(FILE).unlink()
    report = json.loads(home.run("install", "-o", "json").stdout)

    files = report.pop("files")
    assert report == {
        "version": RELEASE,
        "source": "setpoint/setpoint",
        "plugins": str(home.plugins),
        "program": f"{sysconfig.get_path('scripts')}/terraform-provider-setpoint",
    }
    assert files.pop(str(home.plugins / LAYOUT / FILE)) == "updated"
    assert files.pop(str((home.plugins / LAYOUT).with_name("linux_arm64") / FILE)) == "created"
    assert set(files.values()) == {"unchanged"}


def test_a_launcher_that_is_not_executable_is_corrected(home: Home) -> None:
    home.run("install")
    (home.plugins / LAYOUT / FILE).chmod(0o644)
    home.run("install")

    assert (home.plugins / LAYOUT / FILE).stat().st_mode & 0o777 == 0o755


def test_nothing_else_is_left_in_the_folders(home: Home) -> None:
    home.run("install")
    (home.plugins / LAYOUT / FILE).write_text("something else")
    home.run("install")

    assert [one.name for one in (home.plugins / LAYOUT).iterdir()] == [FILE]
    assert sorted(one.name for one in (home.plugins / LAYOUT).parent.iterdir()) == [
        "darwin_amd64",
        "darwin_arm64",
        "linux_amd64",
        "linux_arm64",
    ]


def test_for_another_folder_install_prints_the_cli_configuration(home: Home) -> None:
    result = home.run("install", "--plugins", str(home.folder / "mirror"))

    assert f'    path    = "{home.folder / "mirror"}"\n' in result.stdout
    assert (home.folder / "mirror" / LAYOUT / FILE).exists()
    assert not home.plugins.exists()


def test_pointers_are_in_the_config_home_of_the_user(home: Home) -> None:
    home.run("install", XDG_CONFIG_HOME=str(home.folder / "settings"))

    assert (home.folder / "settings" / "setpoint" / "terraform-provider-setpoint" / RELEASE).exists()


# --- Errors -----------------------------------------------------------------------------------------------------------


def test_a_file_in_the_way_is_named(home: Home) -> None:
    (home.folder / ".terraform.d").mkdir()
    home.plugins.write_text("not a folder")
    result = home.run("install")

    assert result.exit_code == 1
    assert result.stderr == f"error: {home.plugins} is in the way: move it elsewhere, and run again\n"


@pytest.mark.parametrize("name", [LAYOUT, LAYOUT / FILE], ids=["folder", "launcher"])
def test_a_file_or_folder_of_the_wrong_type_is_named_and_left_in_place(home: Home, name: Path) -> None:
    wrong = home.plugins / name
    if name == LAYOUT:
        wrong.parent.mkdir(parents=True)
        wrong.write_text("not a folder")
    else:
        (wrong / "inside").mkdir(parents=True)
    result = home.run("install")

    assert result.stderr == f"error: {wrong} is in the way: move it elsewhere, and run again\n"
    assert wrong.exists()


def test_an_unusable_folder_is_refused_with_the_option_that_names_another(home: Home) -> None:
    folder = home.folder / ("x" * 300)
    result = home.run("install", "--plugins", str(folder))

    assert result.exit_code == 1
    assert result.stderr == (
        f"error: {folder / LAYOUT / FILE}: File name too long: make that possible, or name another folder by "
        "--plugins\n"
    )


def test_an_unusable_config_home_is_refused_with_its_variable(home: Home) -> None:
    result = home.run("install", XDG_CONFIG_HOME=str(home.folder / ("x" * 300)))

    assert result.stderr.endswith("File name too long: make that possible, or name another folder by XDG_CONFIG_HOME\n")
    assert not home.plugins.exists()


def test_a_package_without_the_provider_program_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terraform, "PROGRAM", "terraform-provider-missing")
    result = home.run("install")

    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: there is no terraform-provider-missing in {sysconfig.get_path('scripts')}")
    assert home.files() == {}


# --- Uninstall --------------------------------------------------------------------------------------------------------


def test_uninstall_removes_the_files_and_their_empty_folders(home: Home) -> None:
    home.run("install")
    result = home.run("uninstall")

    assert result.stdout == f"setpoint {RELEASE} is removed from {home.plugins}\n"
    assert sorted(str(one.relative_to(home.folder)) for one in home.folder.rglob("*")) == [
        ".config",
        ".terraform.d",
        ".terraform.d/plugins",
    ]


def test_uninstall_keeps_other_versions_and_providers(home: Home) -> None:
    home.run("install")
    unrelated = [
        home.plugins / "registry.terraform.io" / "setpoint" / "setpoint" / "0.0.9" / "linux_amd64" / "x",
        home.plugins / "registry.terraform.io" / "acme" / "probe" / "1.0.0" / "linux_amd64" / "y",
        home.pointer.with_name("0.0.9"),
    ]
    for file in unrelated:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    home.run("uninstall")

    assert sorted(home.files()) == sorted(map(str, unrelated))


def test_another_version_can_be_removed(home: Home) -> None:
    home.run("install")
    report = json.loads(home.run("uninstall", "--version", "0.0.9", "-o", "json").stdout)

    assert report == {"version": "0.0.9", "plugins": str(home.plugins), "removed": []}
    assert len(home.files()) == 9


def test_uninstall_of_a_missing_version_succeeds(home: Home) -> None:
    result = home.run("uninstall")

    assert result.exit_code == 0
    assert result.stdout == f"setpoint {RELEASE} is not installed in {home.plugins}: there is nothing to remove\n"


@pytest.mark.parametrize("version", ["..", "1.0", "1.2.3rc1", "/", ""])
def test_a_version_that_terraform_does_not_write_is_refused(home: Home, version: str) -> None:
    result = home.run("uninstall", "--version", version)

    assert result.exit_code == 1
    assert result.stderr == f"error: {version!r} is no version as Terraform writes it: write 1.2.3 or 1.2.3-rc.1\n"
