"""Entry point of `terraform-provider-setpoint`. Terraform starts it several times per command, so it imports little."""

import gc
import os
import sys

from setpoint import __version__

ADDRESS = "registry.terraform.io/setpoint/setpoint"


def main() -> None:
    """Serves Terraform. A launcher passes the version that Terraform selected, and other programs that may have it."""
    match sys.argv[1:]:
        case ["--reattach", *address]:
            _serve_for_reattach(*address)
        case [version, *programs] if version[:1].isdigit() and version != __version__:
            _execute_version(version, programs)
        case _:
            _serve()


def _serve() -> None:
    from setpoint.terraform.rpc.fork_client import COOKIE_NAME, is_supported, served_by_fork_server

    may_fork = COOKIE_NAME in os.environ and is_supported()
    if may_fork and (code := served_by_fork_server()) is not None:
        sys.exit(code)
    # What is imported is never garbage, and most processes live for too short to make any.
    gc.disable()
    from setpoint.terraform.rpc.server import build_all_messages, serve
    from setpoint.terraform.setpoint_provider import SetpointProvider, import_implementations

    def serve_setpoint() -> None:
        gc.enable()
        serve(SetpointProvider())

    if may_fork:
        from setpoint.terraform.rpc.fork_server import leave_fork_server

        build_all_messages()
        leave_fork_server(serve_setpoint, import_implementations)
    serve_setpoint()


def _serve_for_reattach(address: str = ADDRESS) -> None:
    from setpoint.terraform.rpc.server import serve_for_reattach
    from setpoint.terraform.setpoint_provider import SetpointProvider

    serve_for_reattach(SetpointProvider(), address)


def _execute_version(version: str, programs: list[str]) -> None:
    """Replaces this process by a program of `version`. It gets no further programs: two wrong ones would loop."""
    for program in programs:
        if os.path.isfile(program) and os.access(program, os.X_OK):
            os.execv(program, [program, version])
    _fail(
        f"Terraform asks for setpoint {version}, and {sys.argv[0]} is setpoint {__version__}. "
        f"Run: pip install setpoint=={version}; or run: setpoint terraform install, write the version that it shows "
        "into the configuration, and run: terraform init -upgrade"
    )


def _fail(message: str) -> None:
    from setpoint.core.values.messages import printable
    from setpoint.terraform.rpc.fork_client import COOKIE_NAME

    message = printable(message)
    # Terraform shows the first line of standard output; a user who runs the command sees standard error.
    if COOKIE_NAME in os.environ:
        sys.stdout.write(f"{message}\n")
        sys.stdout.flush()
    sys.exit(message)


if __name__ == "__main__":
    main()
