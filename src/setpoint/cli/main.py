"""The command line. Each command loads what it needs when it runs, so that `--help` answers at once."""

import click

from setpoint import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Keeps cloud and Kubernetes resources as they were declared."""


@main.command()
def version() -> None:
    """Print the version."""
    click.echo(f"setpoint {__version__}")


@main.command()
@click.option("--svg", type=click.Path(dir_okay=False, writable=True), help="Also draw the story as a picture.")
def demo(svg: str | None) -> None:
    """Tell in one minute what setpoint tells apart. Touches nothing outside this process."""
    from setpoint.cli.demo import tell

    tell(svg)
