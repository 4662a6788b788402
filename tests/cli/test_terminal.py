"""The real command on a real terminal: progress, colours, narrow screens, and the state that it leaves."""

import json
import re

import pytest
import yaml

from setpoint.localcloud.faults import FailOperation
from tests.cli.programs import Terminal
from tests.cli.screen import colours
from tests.cli.workspace import Workspace, bucket, database

GREEN, YELLOW, RED = "32", "33", "31"
LONG_NAME = "l" + "o" * 61 + "g"
DELETED = "SQLDatabase default/app  deleted  0s  projects/some-project/instances/main/databases/app"
INTERRUPTED = "interrupted: what was begun is on record, and the next run goes on"


def _timeless(terminal: Terminal) -> list[str]:
    """What is on the screen, with every duration the same."""
    return [re.sub(r"\b\d+s\b", "0s", line) for line in terminal.lines]


def _seconds(pattern: str, terminal: Terminal) -> int:
    """The duration on the screen that `pattern` matches; 0 when nothing does."""
    found = re.search(pattern, "\n".join(terminal.lines), re.MULTILINE)
    return 0 if found is None else int(found[1])


def _joined(terminal: Terminal) -> str:
    """What is on the screen, as if there were no right margin."""
    return re.sub(r"\s+", "", "".join(terminal.lines))


# --- Progress ---------------------------------------------------------------------------------------------------------


def test_apply_shows_state_time_and_message_of_each_resource(workspace: Workspace) -> None:
    workspace.write(bucket("logs"), database("app", "{name: main}"))
    workspace.hold_responses()

    terminal = workspace.terminal("apply", "-f", "manifest.yaml")
    waiting = r"^SQLDatabase default/app     waiting +(\d+)s  reference SQLInstance default/main is not found$"
    terminal.until(lambda: re.search(waiting, "\n".join(terminal.lines), re.MULTILINE))
    terminal.until(lambda: _seconds(r"^StorageBucket default/logs  reconciling  (\d+)s$", terminal) > 0)
    workspace.release()

    assert terminal.end() == 3
    assert _timeless(terminal) == [
        "StorageBucket default/logs  created  0s",
        "SQLDatabase default/app     waiting  0s  reference SQLInstance default/main is not found",
        "created 1, waiting 1",
    ]


def test_delete_shows_the_operation_that_it_waits_for(workspace: Workspace) -> None:
    workspace.make_instance("main")
    workspace.apply(database("app", "{external: main}"))
    workspace.hold_operations()

    terminal = workspace.terminal("delete", "--yes", "SQLDatabase/app")
    terminal.until(lambda: re.search(r"app  waiting  \d+s  operation \S+ is running", "\n".join(terminal.lines)))
    workspace.release()

    assert terminal.end() == 0
    assert _timeless(terminal) == [DELETED, "deleted 1"]


def test_done_waiting_and_failed_have_different_colours(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    workspace.write(bucket("logs", "US"), bucket("more"), database("app", "{name: main}"))

    terminal = workspace.terminal("apply", "-f", "manifest.yaml")

    assert terminal.end() == 1
    assert colours(terminal.written) == {RED, GREEN, YELLOW}


def test_the_cursor_is_hidden_while_drawing_and_restored(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))

    terminal = workspace.terminal("apply", "-f", "manifest.yaml")

    assert terminal.end() == 0
    assert terminal.screen.was_cursor_hidden
    assert not terminal.screen.is_cursor_hidden


def test_ctrl_c_ends_apply_with_a_message_and_restores_the_cursor(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))
    workspace.hold_responses()

    terminal = workspace.terminal("apply", "-f", "manifest.yaml")
    terminal.until_shown("reconciling")
    terminal.interrupt()

    assert terminal.end() == 130
    assert _timeless(terminal) == ["StorageBucket default/logs  reconciling  0s", INTERRUPTED]
    assert not terminal.screen.is_cursor_hidden


def test_the_next_apply_continues_an_interrupted_one(workspace: Workspace) -> None:
    workspace.make_instance("main")
    workspace.apply(database("app", "{external: main}"))
    workspace.hold_operations()
    terminal = workspace.terminal("delete", "--yes", "SQLDatabase/app")
    terminal.until_shown("is running")
    terminal.interrupt()
    assert terminal.end() == 130
    workspace.release()

    again = workspace.terminal("delete", "--yes", "SQLDatabase/app")

    assert again.end() == 0
    assert _timeless(again) == [DELETED, "deleted 1"]
    requests = [entry.method for entry in workspace.in_cloud(lambda cloud: cloud.journal.entries)]
    assert requests.count("DELETE") == 1


def test_on_a_small_screen_unfinished_resources_are_shown_first(workspace: Workspace) -> None:
    workspace.write(*(bucket(f"logs-{number:02}") for number in range(15)))
    workspace.hold_responses("logs-14")

    terminal = workspace.terminal("apply", "-f", "manifest.yaml", size=(60, 8))
    terminal.until_shown("StorageBucket default/logs-14  reconciling", "… and 9 more; 14 of 15 done")
    workspace.release()

    assert terminal.end() == 0
    created = [f"StorageBucket default/logs-{number:02}  created  0s" for number in range(15)]
    assert _timeless(terminal) == [*created, "created 15"]


# --- Narrow terminals, long words -------------------------------------------------------------------------------------


def test_a_narrow_terminal_shows_the_whole_of_a_long_name_and_message(workspace: Workspace) -> None:
    message = "The disk is\nfull \x1b[2J" + " and full" * 200
    workspace.make_instance("main")
    workspace.in_cloud(lambda cloud: cloud.inject(FailOperation(message=message)))
    workspace.write(bucket(LONG_NAME), database("app", "{external: main}"))

    terminal = workspace.terminal("apply", "-f", "manifest.yaml", size=(40, 10))

    assert terminal.end() == 1
    assert not terminal.screen.is_cursor_hidden
    assert "Traceback" not in terminal.text
    shown = _joined(terminal)
    assert shown.count("StorageBucketdefault/" + LONG_NAME) == 1
    assert shown.count("SQLDatabasedefault/appfailed") == 1
    assert "Thediskisfull�[2J" + "andfull" * 200 in shown


@pytest.mark.parametrize("columns", [1, 3, 20])
def test_a_very_narrow_terminal_causes_no_error(workspace: Workspace, columns: int) -> None:
    workspace.write(bucket("logs"), database("app", "{name: main}"))

    terminal = workspace.terminal("apply", "-f", "manifest.yaml", size=(columns, 5))

    assert terminal.end() == 3
    assert not terminal.screen.is_cursor_hidden
    assert "Traceback" not in terminal.text


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("plan", "-f", "manifest.yaml"), '~spec.lifecycleRuleunset→[{"action":{"type":"Delete"}'),
        (("plan", "-f", "manifest.yaml"), '"tmp/long/prefix-19"]}}]thespecsaysso'),
        (("get", "-o", "wide"), f"projects/some-project/buckets/{LONG_NAME}Theresourceisuptodate"),
        (("events",), f"CreatedStorageBucketdefault/{LONG_NAME}1createdwithspec.location"),
        (("describe",), f"Locationprojects/some-project/buckets/{LONG_NAME}"),
        (("explain",), "now:UpToDate,Theresourceisuptodate"),
    ],
)
def test_nothing_is_cut_off_on_a_narrow_terminal(workspace: Workspace, command: tuple[str, ...], message: str) -> None:
    prefixes = ", ".join(f"tmp/long/prefix-{number}" for number in range(20))
    rule = f"[{{action: {{type: Delete}}, condition: {{matchesPrefix: [{prefixes}]}}}}]"
    workspace.apply(bucket(LONG_NAME))
    workspace.write(bucket(LONG_NAME, f"EU, lifecycleRule: {rule}"))

    terminal = workspace.terminal(*command, size=(40, 24))
    terminal.end()

    assert message in _joined(terminal)


@pytest.mark.parametrize("command", [("get", "-o", "wide"), ("describe",), ("explain",), ("events",)])
def test_control_characters_in_a_service_message_are_removed(workspace: Workspace, command: tuple[str, ...]) -> None:
    workspace.make_instance("main")
    workspace.in_cloud(lambda cloud: cloud.inject(FailOperation(message="full\x1b[2J\x07\nand \u202eetelpmoc")))
    workspace.apply(database("app", "{external: main}"))

    terminal = workspace.terminal(*command)

    assert terminal.end() == 0
    assert "full�[2J� and �etelpmoc" in "\n".join(terminal.lines)


# --- Colours, and none ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("apply", "-f", "manifest.yaml"), ("plan", "-f", "manifest.yaml")])
def test_no_color_means_no_colours(workspace: Workspace, command: tuple[str, ...]) -> None:
    workspace.write(bucket("logs"), database("app", "{name: main}"))

    plain, coloured = workspace.terminal(*command, NO_COLOR="1"), workspace.terminal(*command)

    plain.end()
    assert colours(plain.written) == set()
    coloured.end()
    assert colours(coloured.written) != set()


def test_a_pipe_gets_a_plain_line_for_each_change(workspace: Workspace) -> None:
    workspace.write(bucket("logs"), database("app", "{name: main}"))

    applied = workspace.run("apply", "-f", "manifest.yaml")

    assert applied.returncode == 3
    *lines, waiting, summary = applied.stdout.splitlines()
    assert {"StorageBucket default/logs created"} == {*lines} - {waiting}
    assert waiting == "SQLDatabase default/app waiting: reference SQLInstance default/main is not found"
    assert summary == "created 1, waiting 1"
    assert applied.stderr == ""


@pytest.mark.parametrize(
    "command", [("plan", "-f", "manifest.yaml"), ("get", "-o", "wide"), ("describe",), ("explain",), ("events",)]
)
def test_a_pipe_gets_no_escape_codes(workspace: Workspace, command: tuple[str, ...]) -> None:
    workspace.apply(bucket("logs"), database("app", "{name: main}"))

    shown = workspace.run(*command)

    assert "StorageBucket" in shown.stdout
    assert "\x1b" not in shown.stdout + shown.stderr


def test_colours_can_be_forced_upon_a_pipe_and_nothing_is_drawn_there(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))

    applied = workspace.run("apply", "-f", "manifest.yaml", FORCE_COLOR="1")

    assert applied.stdout == "\x1b[32mStorageBucket default/logs created\x1b[0m\n\x1b[1mcreated 1\x1b[0m\n"


def test_a_terminal_that_cannot_draw_gets_plain_lines(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))

    terminal = workspace.terminal("apply", "-f", "manifest.yaml", TERM="dumb")

    assert terminal.end() == 0
    assert terminal.written == "StorageBucket default/logs created\r\ncreated 1\r\n"


# --- For programs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "member"),
    [
        (("apply", "-f", "manifest.yaml"), "results"),
        (("plan", "-f", "manifest.yaml"), "results"),
        (("get",), "items"),
        (("describe",), None),
        (("explain",), None),
    ],
)
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_data_for_programs_is_one_document_without_colours_also_on_a_terminal(
    workspace: Workspace, command: tuple[str, ...], member: str | None, form: str
) -> None:
    workspace.apply(bucket("logs"), bucket("more"))

    terminal = workspace.terminal(*command, "-o", form, size=(40, 10))

    assert terminal.end() == 0
    assert "\x1b" not in terminal.written
    shown = (json.loads if form == "json" else yaml.safe_load)(terminal.text)
    assert len(shown if member is None else shown[member]) == 2


def test_json_is_printed_without_styles_or_wrapping(workspace: Workspace) -> None:
    workspace.apply(bucket("logs").replace("some-project", "some-project, example.com/note: ':warning: [b]x[/b]'"))

    shown = json.loads(workspace.run("get", "StorageBucket/logs", "-o", "json").stdout)

    assert shown["metadata"]["annotations"]["example.com/note"] == ":warning: [b]x[/b]"


@pytest.mark.parametrize(
    ("command", "shape"),
    [
        (("get", "StorageBucket/logs"), dict),
        (("describe", "StorageBucket/logs"), dict),
        (("explain", "StorageBucket/logs"), dict),
        (("describe", "StorageBucket/logs", "StorageBucket/logs"), list),
        (("describe",), list),
        (("explain",), list),
    ],
)
def test_one_named_resource_is_one_document_and_anything_else_is_a_list(
    workspace: Workspace, command: tuple[str, ...], shape: type[object]
) -> None:
    workspace.apply(bucket("logs"))

    assert type(json.loads(workspace.run(*command, "-o", "json").stdout)) is shape


def test_events_are_a_list_also_when_there_is_only_one(workspace: Workspace) -> None:
    workspace.apply(database("app", "{name: main}"))

    events = json.loads(workspace.run("events", "SQLDatabase/app", "-o", "json").stdout)

    assert [event["reason"] for event in events] == ["DependencyNotFound"]
