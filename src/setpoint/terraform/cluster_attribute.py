"""The attribute `cluster`: which cluster, as whom."""

from collections.abc import Mapping
from typing import Final

from setpoint.terraform.cty_types import BOOL, STRING, ListOf, MapOf
from setpoint.terraform.cty_values import Value
from setpoint.terraform.diagnostics import Diagnostic, Refused, error
from setpoint.terraform.schema import Attribute, Nested, Presence

_OPTIONAL: Final = Presence.OPTIONAL


def _text(description: str, *, sensitive: bool = False) -> Attribute:
    return Attribute(type=STRING, presence=_OPTIONAL, description=description, sensitive=sensitive)


_EXEC: Final = Nested(
    {
        "api_version": Attribute(
            type=STRING, presence=_OPTIONAL, description="By default `client.authentication.k8s.io/v1`."
        ),
        "command": Attribute(type=STRING, presence=Presence.REQUIRED, description="The command."),
        "args": Attribute(type=ListOf(STRING), presence=_OPTIONAL, description="Its arguments."),
        "env": Attribute(type=MapOf(STRING), presence=_OPTIONAL, description="What is added to its environment."),
    }
)

_ATTRIBUTES: Final = {
    "kubeconfig": _text("The text of a kubeconfig.", sensitive=True),
    "config_path": _text("The file of a kubeconfig."),
    "context": _text("A context of the kubeconfig, if not the current one."),
    "host": _text("The address of the API server, instead of a kubeconfig: `https://host:6443`."),
    "cluster_ca_certificate": _text("Who signed the certificate of `host`: PEM, or PEM in base64."),
    "server_name": _text("The name in the certificate of `host`, if it is not its own."),
    "insecure": Attribute(type=BOOL, presence=_OPTIONAL, description="Whether anybody is trusted who is at `host`."),
    "token": _text("A token for `host`.", sensitive=True),
    "client_certificate": _text("A client certificate for `host`: PEM, or PEM in base64.", sensitive=True),
    "client_key": _text("The key of the client certificate.", sensitive=True),
    "proxy_url": _text("The proxy on the way to `host`."),
    "exec": Attribute(type=_EXEC, presence=_OPTIONAL, description="A command that logs in at `host`."),
}
_INLINE: Final = tuple(name for name in _ATTRIBUTES if name not in ("kubeconfig", "config_path", "context", "host"))

CLUSTER: Final = Attribute(
    type=Nested(_ATTRIBUTES),
    presence=_OPTIONAL,
    description="Which cluster: by `kubeconfig` or `config_path`, by `host`, or by a `context` of the kubeconfig that "
    "`KUBECONFIG` names. Left out, the current context. What is said in the provider's block is never stored; what is "
    "said in a resource is stored with it.",
)


def check_cluster(cluster: Value) -> None:
    """Refuses a cluster that is two at once, or half of one."""
    if not isinstance(cluster, Mapping):
        return
    ways = [name for name in ("kubeconfig", "config_path", "host") if cluster.get(name) is not None]
    if len(ways) > 1:
        raise Refused(wrong(f"{' and '.join(ways)} are two ways to name a cluster: keep one of them"))
    idle = [name for name in _INLINE if cluster.get(name) is not None]
    if idle and ways != ["host"]:
        raise Refused(wrong(f"{', '.join(idle)} goes with host, which is missing: write it, or leave these out"))
    if ways == ["host"] and cluster.get("context") is not None:
        raise Refused(wrong("host has no contexts: leave context out, or name a kubeconfig"))
    if (cluster.get("client_certificate") is None) != (cluster.get("client_key") is None):
        raise Refused(wrong("client_certificate and client_key go together: write both"))


def wrong(why: str) -> Diagnostic:
    """What is told of a `cluster` that is none."""
    return error("No such cluster", f"cluster: {why}.", ("cluster",))
