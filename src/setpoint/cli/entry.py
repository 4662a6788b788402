"""The entry point of the `setpoint` command, and the help text of each command.

`setpoint --help` is answered from the table below, before click or even `typing` is imported. `verify-upgrade` starts
other versions by this module's name: it must not move.
"""

import gc
import os
import sys

from setpoint.cli.output_pipes import BROKEN_PIPE_CODE, OutputPipes

SUMMARY = "Keeps cloud and Kubernetes resources as they were declared."
STORE_HELP = "Where resources are kept: sqlite:///path."
COOKIE_HELP = "Where cookies are kept: status or annotation."
TENANCY_HELP = "In a cluster: a namespace has one Google project (strict, default), or any (single)."
# The list of commands shows the first sentence, which has to fit into 58 characters: click would cut it off.
COMMAND_HELP = {
    "apply": "Declare the resources in PATH, and reconcile them. Exit 0 settled, 1 failed, 3 still waiting or blocked.",
    "backup": "Copy the store into FILE, while it is in use. The copy is checked; setpoint restore takes it.",
    "completion": 'Print the completion script of a shell. Load it with eval "$(setpoint completion bash)".',
    "crds": "Print the CustomResourceDefinitions of kinds. Without a word, all but those of the catalogue, with an "
    "admission policy, which warns of annotations without effect. For kubectl apply --server-side -f -.",
    "dashboard": "Serve a page that shows resources, graph and plan. On this machine, until Ctrl-C; it writes nothing.",
    "delete": "Delete resources and their live objects. Dependants go before what they need, and those that stay are "
    "named. On a terminal it asks. Exit 0 gone, 1 failed, not declared or not confirmed, 3 still waiting or blocked.",
    "demo": "Show drift, field policies and deletion of a local bucket. Touches nothing outside this process.",
    "describe": "Show everything on record about a resource.",
    "doctor": "Check store, services, rights and versions. Each finding says what to do. Exit 0 without an "
    "error, 1 with one.",
    "events": "Show what happened to resources, oldest first.",
    "explain": "Explain the last step of a resource. It shows which digest moved, which fields, and which rule.",
    "export": "Print resources and their state, for setpoint import.",
    "get": "List resources, or print some of them. The word sets lists the sets, with exit 1 while one is refused.",
    "graph": "Draw the dependency graph, with the state of each node. Exit 1 for a cycle.",
    "history": "Show the history of a resource, oldest first. Each step with who asked, its fields before and after, "
    "drift, refusals, and with -o wide the requests that a running process sent.",
    "import": "Write manifests of live objects, or import an export. Of kinds in a project: minimal, and proven by "
    "their plan; exit 0 applying them changes nothing, 2 it does, 1 error. Of a file of setpoint export: its resources "
    "and their state. Touches no live object.",
    "install": "Install or upgrade setpoint in a cluster. The cluster is that of the current kubeconfig context.",
    "kinds": "List the kinds that are installed, or describe some. Those of plug-ins, too, with their distribution; of "
    "SQLInstance.spec.settings, that field and those below it. "
    "Exit 1 if one of them cannot be used.",
    "local-cloud": "Serve strict local Google services. For demos and tests.",
    "migrate": "Preview a migration from another controller; hand over. Exit 0 nothing to write, 2 changes, 1 error.",
    "new": "Write a package with a kind of your own.",
    "plan": "Show what a step would write, and why; writes nothing. Exit 0 nothing to do, 2 changes, 1 error.",
    "reconcile": "Reconcile now, and retry what a service did not accept.",
    "record": "Record all that setpoint plan --all reads in one file. Without Secrets; it can be planned elsewhere.",
    "restore": "Replace the store by a backup. No process may use it; the replaced store is kept beside it.",
    "run": "Run the controllers, until SIGTERM or Ctrl-C. With -f or --git: of what a folder or a repository declares.",
    "schema": "Print the JSON Schema of manifests, for editors. Of all kinds, or of some; in one document.",
    "tenant": "Give a namespace the account that setpoint acts as there. With the rights that the kinds need.",
    "terraform": "Use setpoint as a provider of Terraform and OpenTofu.",
    "validate": "Check manifests without any service or store. Each mistake with its file and line. Exit 0 valid, "
    "1 not.",
    "verify-upgrade": "Plan one world with two versions, and compare. "
    "Exit 0 nothing new is written, 2 something is, 1 broken.\n\n"
    "SIDE may go on with ,KIND=stateless or ,KIND=stateful or ,KIND=REVISION, to handle a kind otherwise.",
    "version": "Print the version.",
}


def main() -> None:
    """Runs the command line. Without a reader of its output it goes on to its end, and exits as after SIGPIPE."""
    pipes = OutputPipes()
    try:
        _run()
    except SystemExit:
        if not pipes.are_broken:
            raise
    if pipes.are_broken:
        raise SystemExit(BROKEN_PIPE_CODE)


def _run() -> None:
    # A shell that completes a line calls without arguments, too.
    if sys.argv[1:] in ([], ["-h"], ["--help"]) and "_SETPOINT_COMPLETE" not in os.environ:
        sys.stdout.write(help_text())
        return
    sys.excepthook = _print_exception
    # What is imported is never garbage: `exit_with` enables it when the command begins.
    gc.disable()
    from setpoint.cli.main import main as commands

    if "_SETPOINT_COMPLETE" in os.environ:
        from setpoint.cli.shell_scripts import use_own_scripts

        use_own_scripts()
    commands()


def _print_exception(_kind: object, error: BaseException, _trace: object) -> None:
    """Prints a traceback that a terminal can show: the message of an exception may be another author's."""
    from traceback import format_exception

    from setpoint.core.values.messages import printable

    sys.stderr.write(printable("".join(format_exception(error))))


def help_text() -> str:
    """What `setpoint --help` prints."""
    width = max(map(len, COMMAND_HELP))
    commands = "".join(f"  {name:<{width}}  {_first_sentence(text)}\n" for name, text in COMMAND_HELP.items())
    return f"""\
Usage: setpoint [OPTIONS] COMMAND [ARGS]...

  {SUMMARY}

Options:
  --store URL              {STORE_HELP}
  --cookie-location PLACE  {COOKIE_HELP}
  -h, --help               Show this message and exit.

Commands:
{commands}"""


def _first_sentence(text: str) -> str:
    return f"{text.partition('. ')[0].removesuffix('.')}."
