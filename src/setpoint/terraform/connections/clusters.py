"""The attribute `cluster`, and the clusters that this process is connected to: one connection for each."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import msgspec

from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import Json
from setpoint.core.values.messages import worded
from setpoint.errors import RemoteError, RemoteUnavailable, ResponseTooLarge, SetpointError
from setpoint.terraform.cty.json_trees import to_json_tree
from setpoint.terraform.cty.types import BOOL, STRING, ListType, MapType
from setpoint.terraform.cty.values import CtyValue, is_known
from setpoint.terraform.framework.diagnostics import Diagnostic, DiagnosticsError, error, warning
from setpoint.terraform.framework.hidden_texts import NO_TEXTS, HiddenTexts
from setpoint.terraform.framework.schema import Attribute, NestedAttributes, Presence
from setpoint.terraform.resources.shown_values import leaf_texts, words_in
from setpoint.terraform.resources.vocabulary import attribute_words

if TYPE_CHECKING:
    from setpoint.clients.kubernetes.client import KubernetesClient
    from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
    from setpoint.objects.recent_answers import RecentAnswers
    from setpoint.objects.session import ClusterSession

_OPTIONAL: Final = Presence.OPTIONAL
# The attributes that say who asks, and not which server.
_CREDENTIALS: Final = ("token", "client_certificate", "client_key", "exec", "cluster_ca_certificate", "insecure")
# An argument that is a flag without a value, and the user and the password in an address.
_FLAG: Final = re.compile(r"-[^=]*")
_USERINFO: Final = re.compile(r"//([^/@]+)@")


def _string(description: str, *, sensitive: bool = False) -> Attribute:
    return Attribute(type=STRING, presence=_OPTIONAL, description=description, sensitive=sensitive)


_EXEC: Final = NestedAttributes(
    {
        "api_version": Attribute(
            type=STRING, presence=_OPTIONAL, description="By default `client.authentication.k8s.io/v1`."
        ),
        "command": Attribute(type=STRING, presence=Presence.REQUIRED, description="The command."),
        "args": Attribute(type=ListType(STRING), presence=_OPTIONAL, description="Its arguments."),
        "env": Attribute(
            type=MapType(STRING), presence=_OPTIONAL, description="Variables that are added to its environment."
        ),
    }
)

_ATTRIBUTES: Final = {
    "kubeconfig": _string("The text of a kubeconfig.", sensitive=True),
    "config_path": _string("The file of a kubeconfig."),
    "context": _string("A context of the kubeconfig, if not the current one."),
    "host": _string("The address of the API server, instead of a kubeconfig: `https://host:6443`."),
    "cluster_ca_certificate": _string("The CA of the certificate of `host`: PEM, or PEM in base64."),
    "server_name": _string("The name in the certificate of `host`, if it is not its own."),
    "insecure": Attribute(
        type=BOOL, presence=_OPTIONAL, description="Whether the certificate of `host` is not verified."
    ),
    "token": _string("A token for `host`.", sensitive=True),
    "client_certificate": _string("A client certificate for `host`: PEM, or PEM in base64.", sensitive=True),
    "client_key": _string("The key of the client certificate.", sensitive=True),
    "proxy_url": _string("The proxy on the way to `host`."),
    "exec": Attribute(type=_EXEC, presence=_OPTIONAL, description="A command that logs in at `host`."),
}
_HOST_ATTRIBUTES: Final = tuple(
    name for name in _ATTRIBUTES if name not in ("kubeconfig", "config_path", "context", "host")
)

CLUSTER: Final = Attribute(
    type=NestedAttributes(_ATTRIBUTES),
    presence=_OPTIONAL,
    description="Which cluster: by `kubeconfig` or `config_path`, by `host`, or by a `context` of the kubeconfig that "
    "`KUBECONFIG` names. Left out, the current context. What is said in the provider's block is never stored; what is "
    "said in a resource is stored with it.",
)


def validate_cluster(cluster: CtyValue) -> None:
    """Raises DiagnosticsError for a `cluster` with contradictory or missing attributes."""
    if not isinstance(cluster, Mapping):
        return
    ways = [name for name in ("kubeconfig", "config_path", "host") if cluster.get(name) is not None]
    if len(ways) > 1:
        raise DiagnosticsError(cluster_error(f"{' and '.join(ways)} are two ways to name a cluster: keep one of them"))
    idle = [name for name in _HOST_ATTRIBUTES if cluster.get(name) is not None]
    if idle and ways != ["host"]:
        raise DiagnosticsError(
            cluster_error(f"{', '.join(idle)} goes with host, which is missing: write it, or leave these out")
        )
    if ways == ["host"] and cluster.get("context") is not None:
        raise DiagnosticsError(cluster_error("host has no contexts: leave context out, or name a kubeconfig"))
    if (cluster.get("client_certificate") is None) != (cluster.get("client_key") is None):
        raise DiagnosticsError(cluster_error("client_certificate and client_key go together: write both"))


def cluster_error(why: str) -> Diagnostic:
    """The diagnostic of an invalid `cluster`."""
    return error("No such cluster", f"cluster: {why}.", ("cluster",))


_UNREACHABLE: Final = "The cluster does not answer"
_READ_FROM_STATE: Final = (
    "What is known of it comes from the state: changes that others made there are not seen, and changes that are to be "
    "made there are not checked. Objects of other clusters are not affected. Plan again once it answers."
)
_NEEDED: Final = (
    "Objects of other clusters are not affected. Start this one, or correct the attribute cluster; then run this again."
)


def unreachable_warning(connection: "ClusterConnection", fault: RemoteUnavailable) -> Diagnostic:
    """The diagnostic of a read or a plan that goes on without the cluster."""
    return warning(_UNREACHABLE, f"{described_fault(connection, fault)}\n\n{_READ_FROM_STATE}")


def unreachable_error(connection: "ClusterConnection", fault: RemoteUnavailable) -> Diagnostic:
    """The diagnostic of a call that needs the cluster."""
    return error(_UNREACHABLE, f"{described_fault(connection, fault)}\n\n{_NEEDED}")


def described_fault(connection: "ClusterConnection", fault: RemoteError) -> str:
    """An error of a cluster, with its name and address in front."""
    name = connection.name if connection.server in connection.name else f"{connection.name}, {connection.server}"
    return f"{name}: {worded(fault, attribute_words)}."


@contextmanager
def cluster_needed(connection: "ClusterConnection") -> Iterator[None]:
    """Inside, a cluster that does not answer is an error that names it and says what to do."""
    try:
        yield
    except ResponseTooLarge:
        raise
    except RemoteUnavailable as fault:
        raise DiagnosticsError(unreachable_error(connection, fault)) from fault


def _credentials_in(cluster: CtyValue) -> HiddenTexts:
    if not isinstance(cluster, Mapping):
        return NO_TEXTS
    texts = [cluster.get(name) for name in ("token", "client_key", "client_certificate")]
    command, proxy = cluster.get("exec"), cluster.get("proxy_url")
    if isinstance(command, Mapping):
        args, env = command.get("args"), command.get("env")
        texts += (
            [one for one in args if isinstance(one, str) and not _FLAG.fullmatch(one)]
            if isinstance(args, tuple)
            else []
        )
        texts += env.values() if isinstance(env, Mapping) else []
    if isinstance(proxy, str):
        texts += [userinfo.rpartition(":")[2] for userinfo in _USERINFO.findall(proxy)]
    found = HiddenTexts(frozenset(one for one in texts if isinstance(one, str) and one))
    kubeconfig = cluster.get("kubeconfig")
    return found | _users_in(kubeconfig) if isinstance(kubeconfig, str) else found


def _users_in(kubeconfig: str) -> HiddenTexts:
    """The values of the users of a kubeconfig, but for their names; of a text that is no kubeconfig, all of it."""
    from setpoint.core.values.yaml_documents import read_documents

    try:
        documents = [one.value for one in read_documents(kubeconfig, "")]
    except (SetpointError, RecursionError):
        return words_in(kubeconfig)
    users = [one for tree in documents if isinstance(tree, dict) for one in _listed(tree.get("users"))]
    return HiddenTexts(frozenset(text for one in users for text in leaf_texts(one.get("user"))))


def _listed(value: Json) -> list[dict[str, Json]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


class ClusterLocation(msgspec.Struct, frozen=True):
    """The location of an object, and the key of its cluster."""

    cluster: str
    location: str


class ClusterConnections:
    """The clusters that this process has used. `default` is the `cluster` of the provider's block."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self.default: CtyValue = None
        self._environment = environment
        self._clients: dict[str, tuple[KubernetesClient, RecentAnswers]] = {}
        self._open: dict[str, ClusterSession] = {}
        # Those that a read of this process found not to answer. Terraform reads before it plans, not before it applies.
        self._unread: set[str] = set()

    def hidden_texts(self, cluster: CtyValue) -> HiddenTexts:
        """The credentials in `cluster` and in the provider's block: no message may repeat them."""
        return _credentials_in(cluster) | _credentials_in(self.default)

    def is_cluster_known(self, cluster: CtyValue) -> bool:
        """Whether every value is known of the cluster that `cluster` selects."""
        return is_known(self._selected(cluster))

    def require_known(self, cluster: CtyValue) -> None:
        """Raises DiagnosticsError for a cluster with values that are not known yet, of what is read in a plan."""
        if not self.is_cluster_known(cluster):
            why = (
                "Values of cluster are known only after an apply, and it is to be read now. Have it read in the apply: "
            )
            raise DiagnosticsError(
                error("The cluster is not known yet", f"{why}list the resource that makes the cluster in depends_on.")
            )

    def session(self, cluster: CtyValue) -> "ClusterSession":
        """The session of the cluster that `cluster` selects; UserError when it is invalid."""
        key = self.key(cluster)
        if key not in self._open:
            # Imported on use: it loads the engine, which a plan without changes does not need.
            from setpoint.objects.session import ClusterSession

            client, answers = self.client(cluster)
            self._open[key] = ClusterSession.at(client.connection, client, answers)
        return self._open[key]

    def client(self, cluster: CtyValue) -> "tuple[KubernetesClient, RecentAnswers]":
        """The client of that session, and what it was answered of late."""
        key = self.key(cluster)
        if key not in self._clients:
            # Imported on use: most processes of a Terraform command reach no cluster.
            from setpoint.clients.kubernetes.client import KubernetesClient
            from setpoint.objects.recent_answers import RecentAnswers
            from setpoint.terraform.connections.connection import connection_for

            client = KubernetesClient(connection_for(self._selected(cluster), self._environment))
            self._clients[key] = client, RecentAnswers()
        return self._clients[key]

    def connection(self, cluster: CtyValue) -> "ClusterConnection":
        """The connection of that session."""
        return self.client(cluster)[0].connection

    def is_login_changed(self, before: CtyValue, after: CtyValue) -> bool:
        """Whether `after` is the same server as `before` with something else, such as another token."""
        if not self.is_cluster_known(after) or self.key(before) == self.key(after):
            return False
        return self.server_key(before) == self.server_key(after)

    def is_default_at(self, cluster: CtyValue) -> bool:
        """Whether `cluster` is a resource's own, and the provider's block names the same server."""
        if cluster is None or self.default is None or not is_known(self.default):
            return False
        return self.server_key(cluster) == self.server_key(None)

    def add_unread(self, cluster: CtyValue) -> None:
        """The cluster did not answer a read: a plan goes by the state."""
        self._unread.add(self.key(cluster))

    def is_unread(self, cluster: CtyValue) -> bool:
        """Whether the cluster did not answer a read in this process."""
        return self.key(cluster) in self._unread

    def key(self, cluster: CtyValue) -> str:
        """A digest that identifies a cluster and its user."""
        return digest([to_json_tree(self._selected(cluster))])

    def server_key(self, cluster: CtyValue) -> str:
        """A digest that identifies a cluster, whatever its user."""
        connection = self.connection(cluster)
        return digest([connection.server, connection.server_name, connection.proxy])

    def location_key(self, cluster: CtyValue) -> str:
        """A digest of how `cluster` names its server: the same with other credentials, and at another address."""
        selected = self._selected(cluster)
        if not isinstance(selected, Mapping) or selected.get("kubeconfig") is not None:
            return self.key(cluster) if selected is None else self.server_key(cluster)
        named = {name: one for name, one in selected.items() if name not in _CREDENTIALS}
        return digest([to_json_tree(named)])

    def portable_key(self, cluster: CtyValue) -> str:
        """As `location_key`, wherever the file of a kubeconfig is: on another machine it has another path."""
        selected = self._selected(cluster)
        path = selected.get("config_path") if isinstance(selected, Mapping) else None
        if isinstance(selected, Mapping) and isinstance(path, str):
            return self.location_key({**selected, "config_path": PurePath(path).name})
        return self.location_key(cluster)

    def _selected(self, cluster: CtyValue) -> CtyValue:
        return self.default if cluster is None else cluster
