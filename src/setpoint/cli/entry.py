"""The entry point of the `setpoint` command. `setpoint --help` is answered from a constant, before click is imported.

`verify-upgrade` starts other versions by this module's name: it must not move.
"""

import os
import sys

HELP = """\
Usage: setpoint [OPTIONS] COMMAND [ARGS]...

  Keeps cloud and Kubernetes resources as they were declared.

Options:
  --store URL  Where resources are kept: sqlite:///path.
  -h, --help   Show this message and exit.

Commands:
  apply           Declare what is in PATH, and make it so.
  completion      Print the completion script: eval "$(setpoint completion...
  crds            Print the CustomResourceDefinitions of kinds, for kubectl...
  delete          Delete resources and what they stand for.
  demo            Tell in one minute what setpoint tells apart.
  describe        Everything about a resource.
  events          What happened to resources, oldest first.
  explain         Why the last step did what it did: what moved, which...
  export          Print resources, and what is remembered of them, for...
  get             List resources, or print some of them.
  graph           Draw who needs whom, and how it stands with each.
  import          Go on with resources where another store left off.
  install         Install setpoint into the cluster of the current...
  local-cloud     Serve a strict local Cloud SQL and Cloud Storage, for...
  migrate         Show what taking over from another controller would...
  plan            Show what a step would write, and why; writes nothing.
  reconcile       Look now, and try again where a service would not follow.
  record          Keep everything that setpoint plan --all reads in one...
  run             Keep everything as declared, until SIGTERM or Ctrl-C.
  terraform       Use setpoint as a provider of Terraform and OpenTofu.
  verify-upgrade  Plan one world with two versions, and compare.
  version         Print the version.
"""


def main() -> None:
    """Runs the command line."""
    # A shell that completes a line calls without arguments, too.
    if sys.argv[1:] in ([], ["-h"], ["--help"]) and "_SETPOINT_COMPLETE" not in os.environ:
        pass

        sys.stdout.write(HELP)
        return
    from setpoint.cli.main import main as commands

    commands()
