"""No text of another author reaches a terminal with a character that it interprets: in no view, and in no error."""

import asyncio
import io
import json
import logging
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from setpoint.app import AppSettings, StoreAccess, open_engine
from setpoint.cli.commands.graph import FORMATS, _graph
from setpoint.cli.commands.inspect import describe, events, explain, get
from setpoint.cli.commands.transfer import ExportOptions, _export
from setpoint.cli.entry import _print_exception
from setpoint.cli.request import CommandRequest, make_logging_printable
from setpoint.cli.views.terminal import SafeConsole
from setpoint.core.values.messages import printable
from setpoint.core.values.yaml_documents import read_documents, write_document
from setpoint.engine.ports import EventRecord
from setpoint.replay.comparison import Comparison, ReportLabels, junit_report, markdown_report
from setpoint.runtime.logs import human_line, json_line
from setpoint.terraform.framework.diagnostics import error
from setpoint.terraform.rpc.context import write_diagnostics
from tests.cli.workspace import Workspace, user_environment

# Clears the screen, sets the title, writes to the clipboard, draws a link; rings; the same in C1; reverses the writing;
# tags, an isolate, a deletion and a line separator.
HOSTILE: Final = (
    "\x1b[2J\x1b]0;owned\x07\x1b]52;c;aGk=\x1b\\\x1b]8;;http://evil\x1b\\ \x07\x08\r\x9b31m\x9d0;x\x9c"
    "\u202egnp.exe\u202c\u2066\u2069\u200e\u200f\u061c\U000e0041\x7f\u2028\x85\x00"
)
# What our own colours and movements are: only on a terminal.
OWN: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
texts = st.text() | st.lists(st.sampled_from([*HOSTILE, "\n", "a", "é", "日"])).map("".join)
sound_texts = texts.map(lambda text: text.encode("utf-8", "ignore").decode())


def interpreted(text: str) -> list[str]:
    """The characters that a terminal may interpret or hide, by what Unicode says, and not by our own table."""
    kept = {"\n", "\u200c", "\u200d"}
    bad = {"Cc", "Cs", "Zl", "Zp"}
    return sorted(
        {
            one
            for one in text
            if one not in kept
            and (unicodedata.category(one) in bad or unicodedata.bidirectional(one) in _BIDI or one in "\U000e0041\x7f")
        }
    )


_BIDI: Final = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


# --- Laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.laws
@given(texts)
@example(HOSTILE)
def test_no_printable_text_has_a_character_that_a_terminal_interprets(text: str) -> None:
    assert interpreted(printable(text)) == []


@pytest.mark.laws
@given(st.recursive(sound_texts, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(sound_texts, inner)))
@example({HOSTILE: [HOSTILE]})
def test_printable_json_is_the_same_value(value: Any) -> None:
    text = printable(json.dumps(value, ensure_ascii=False))

    assert interpreted(text) == []
    assert json.loads(text) == value


@pytest.mark.laws
@given(st.dictionaries(sound_texts, sound_texts, max_size=3))
@example({HOSTILE: HOSTILE})
@example({"a": "line\n  \u202eline\n" * 9})
def test_yaml_is_the_same_value_and_shows_no_such_character(value: dict[str, str]) -> None:
    text = write_document(value)

    assert interpreted(text) == []
    assert [one.value for one in read_documents(text, "")] == [value]


def console_on(*, is_terminal: bool, width: int) -> SafeConsole:
    colours = "standard" if is_terminal else None
    return SafeConsole(file=io.StringIO(), width=width, force_terminal=is_terminal, color_system=colours)


def every_renderable(text: str) -> Iterator[Any]:
    table = Table(text, title=text, caption=text)
    table.add_row(Text(text), style="bold")
    tree = Tree(Text(text))
    tree.add(Text(text, style="red"))
    yield from (Text(text), table, tree, Panel(Text(text), title=Text(text)), Group(Text(text), Text("x")))


@pytest.mark.laws
@given(texts, st.booleans())
@example(HOSTILE, True)
@example(HOSTILE, False)
def test_a_console_prints_no_such_character_but_its_own(text: str, is_terminal: bool) -> None:
    console = console_on(is_terminal=is_terminal, width=40)
    for one in every_renderable(text):
        console.print(one, markup=False)
        console.print(one, soft_wrap=True, markup=False)
    console.out(text)
    console.write(text)
    with Live(Text(text), console=console, auto_refresh=False) as live:
        live.update(Text(text), refresh=True)

    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert interpreted(OWN.sub("", printed).replace("\r", "") if is_terminal else printed) == []


@pytest.mark.laws
@given(texts)
@example(HOSTILE)
def test_no_log_line_has_such_a_character(text: str) -> None:
    record = logging.LogRecord("setpoint", logging.INFO, "", 1, "step failed", None, None)
    record.__dict__.update(ref=text, why={text: text})

    assert interpreted(json_line(record)) == []
    assert interpreted(human_line(record).plain) == []


# --- The views of a store ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile_store(tmp_path_factory: pytest.TempPathFactory) -> AppSettings:
    """A store in which every text that can be hostile is: labels, annotations, spec, status, conditions, events."""
    folder = tmp_path_factory.mktemp("hostile")
    settings = AppSettings(f"sqlite:///{folder}/state.db", environment={"SETPOINT_GCP_AUTH": "anonymous"})

    async def fill() -> None:
        async with open_engine(settings, StoreAccess.WRITE) as engine:
            for number, location in enumerate(("projects/p/buckets/b", HOSTILE)):
                annotations = {"note": HOSTILE, "config.kubernetes.io/depends-on": "/namespaces/default/X/y"}
                metadata: Any = {"name": f"b{number}", "annotations": annotations if number else {"note": HOSTILE}}
                tree = {"apiVersion": "storage.cnrm.cloud.google.com/v1beta1", "kind": "StorageBucket"}
                resource = await engine.store.apply(
                    {
                        **tree,
                        "metadata": metadata,
                        "spec": {"location": HOSTILE, "website": {HOSTILE: HOSTILE}},
                    }
                )
                await engine.store.update_status(resource, hostile_status(location, is_record=location != HOSTILE))
                note = EventRecord(resource.ref, resource.uid, HOSTILE, HOSTILE, HOSTILE, "2026-01-01T00:00:00Z")
                await engine.store.record_event(note)

    asyncio.run(fill())
    return settings


def hostile_status(location: str, *, is_record: bool) -> dict[str, Any]:
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": HOSTILE,
        "message": f"{HOSTILE}\n{HOSTILE}",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    change = {"path": f"spec[{json.dumps(HOSTILE)}]", "before": HOSTILE, "after": [HOSTILE], "rule": "spec"}
    write = {"action": "update", "name": HOSTILE, "changes": [change]}
    step = {"at": HOSTILE, "trigger": HOSTILE, "decision": "drifted", "because": HOSTILE, "writes": [write]}
    step = {**step, "kept": [change], "withheld": [change]} if is_record else {"at": HOSTILE, HOSTILE: HOSTILE}
    return {
        "conditions": [condition],
        "url": HOSTILE,
        "selfLink": HOSTILE,
        "output": {"value": HOSTILE},
        "setpoint": {"location": location, "step": step, "operation": HOSTILE},
    }


COMMANDS: Final[dict[str, Callable[[CommandRequest], Any]]] = {
    "get": get,
    "describe": describe,
    "explain": explain,
    "events": events,
    "graph": _graph,
    "export": lambda request: _export(request, ExportOptions(with_secrets=False, pause=False, to="-")),
}
FORMS: Final = {
    **dict.fromkeys(("get", "describe", "explain", "events"), ("table", "wide", "yaml", "json")),
    "graph": ("text", *FORMATS),
    "export": ("yaml", "json"),
}


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize(("command", "form"), [(name, form) for name, forms in FORMS.items() for form in forms])
def test_no_view_of_a_store_prints_such_a_character(
    command: str, form: str, is_terminal: bool, hostile_store: AppSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    console = console_on(is_terminal=is_terminal, width=120)
    request = CommandRequest(hostile_store, console, output=form)

    asyncio.run(COMMANDS[command](request))

    printed, captured = console.file.getvalue(), capsys.readouterr()  # type: ignore[attr-defined]
    assert len(printed) > 20
    for text in (printed, captured.out, captured.err):
        assert interpreted(OWN.sub("", text)) == []
    if not is_terminal:
        assert "\x1b" not in printed


def test_what_is_hidden_in_data_reads_back(hostile_store: AppSettings) -> None:
    readers: dict[str, Callable[[str], Any]] = {
        "json": json.loads,
        "yaml": lambda text: read_documents(text, "")[0].value,
    }
    for form, read in readers.items():
        console = SafeConsole(file=io.StringIO(), width=120)
        asyncio.run(get(CommandRequest(hostile_store, console, targets=("StorageBucket/b0",), output=form)))

        found = read(console.file.getvalue())  # type: ignore[attr-defined]
        assert found["metadata"]["annotations"]["note"] == HOSTILE


# --- Errors -----------------------------------------------------------------------------------------------------------

ESCAPE: Final = "\x1b]0;owned\x07\x1b[2J\u202e\x9b1m"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace(tmp_path_factory.mktemp("errors"), user_environment()) as workspace:
        for name, text in MANIFESTS.items():
            workspace.write(text, file=name)
        yield workspace


HEADING: Final = "apiVersion: storage.cnrm.cloud.google.com/v1beta1\nkind: StorageBucket\n"
ESCAPED: Final = json.dumps(ESCAPE)
MANIFESTS: Final = {
    f"{ESCAPE}.yaml": "a: [",
    "name.yaml": f"{HEADING}metadata: {{name: {ESCAPED}}}\n",
    "field.yaml": f"{HEADING}metadata: {{name: a}}\nspec: {{{ESCAPED}: 1}}\n",
    "value.yaml": f"{HEADING}metadata: {{name: a, annotations: {{setpoint.dev/management: {ESCAPED}}}}}\nspec: {{}}\n",
    "kind.yaml": f"apiVersion: {ESCAPED}\nkind: {ESCAPED}\nmetadata: {{name: a}}\n",
    "key.yaml": f"{ESCAPED}: 1\n{ESCAPED}: 2\n",
    "reference.yaml": f"{HEADING}metadata: {{name: a}}\nspec: {{encryption: {{kmsKeyRef: {{name: {ESCAPED}}}}}}}\n",
}


@pytest.mark.parametrize(
    "words",
    [
        *(("apply", "-f", name) for name in MANIFESTS),
        ("apply", "-f", f"missing{ESCAPE}"),
        ("plan", "-f", "reference.yaml"),
        ("get", f"Bucket{ESCAPE}"),
        ("get", f"StorageBucket/{ESCAPE}"),
        ("get", f"--{ESCAPE}"),
        ("get", "-o", ESCAPE),
        (ESCAPE,),
        (f"--sto{ESCAPE}",),
        ("run", "--shards", ESCAPE),
        ("run", "--kinds", ESCAPE),
        ("run", "--metrics", ESCAPE),
        ("apply", "--timeout", ESCAPE, "-f", "name.yaml"),
        ("--store", f"sqlite:///name.yaml/{ESCAPE}/y.db", "apply", "-f", "reference.yaml"),
        ("--store", f"{ESCAPE}:", "get"),
        ("plan", "--world", f"{ESCAPE}.gz"),
        ("verify-upgrade", "--baseline", ESCAPE),
        ("import", "-f", f"{ESCAPE}.yaml"),
        ("local-cloud", "--port", ESCAPE),
        ("terraform", "uninstall", "--version", ESCAPE),
        ("install", "--dry-run", "-n", ESCAPE),
    ],
)
def test_no_error_prints_such_a_character(words: tuple[str, ...], workspace: Workspace) -> None:
    ended = workspace.run(*words)

    assert ended.returncode != 0
    assert ended.stderr + ended.stdout
    assert interpreted(ended.stderr) == interpreted(ended.stdout) == []


def test_an_exception_that_was_not_expected_prints_no_such_character(capsys: pytest.CaptureFixture[str]) -> None:
    _print_exception(ValueError, ValueError(ESCAPE), None)

    printed = capsys.readouterr().err
    assert "ValueError: \\u001b]0;owned" in printed
    assert interpreted(printed) == []


def test_a_warning_of_a_library_prints_no_such_character(capsys: pytest.CaptureFixture[str]) -> None:
    make_logging_printable()
    record = logging.LogRecord("asyncio", logging.ERROR, "", 1, "never retrieved: %s", (ESCAPE,), None)
    assert logging.lastResort is not None
    logging.lastResort.handle(record)

    assert capsys.readouterr().err == ("never retrieved: \\u001b]0;owned\\u0007\\u001b[2J\\u202e\\u009b1m\n")


def test_markup_in_a_text_is_text() -> None:
    console = console_on(is_terminal=True, width=80)
    console.print("[link=http://evil]click[/link] [blink]now[/blink] :boom:")

    assert console.file.getvalue() == "[link=http://evil]click[/link] [blink]now[/blink] :boom:\n"  # type: ignore[attr-defined]


def test_a_diagnostic_that_terraform_prints_has_no_such_character() -> None:
    class Messages:
        kept: Final = list[dict[str, Any]]()

        def add(self, **members: Any) -> None:
            self.kept.append(members)

    messages = Messages()
    write_diagnostics(messages, [error(ESCAPE, ESCAPE)])

    assert interpreted(messages.kept[0]["summary"] + messages.kept[0]["detail"]) == []


def test_no_report_of_an_upgrade_has_such_a_character() -> None:
    found, names = Comparison((), (ESCAPE,), (ESCAPE,)), ReportLabels(ESCAPE, ESCAPE)

    assert interpreted(markdown_report(found, names)) == []
    assert interpreted(junit_report(found, names)) == []
