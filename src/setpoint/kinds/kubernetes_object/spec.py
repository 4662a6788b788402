"""Spec, status and live form of a KubernetesObject, field by field."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct

from setpoint.core.schema.checks import AnyOf, Check, Given, Is, Not, NotEmpty
from setpoint.core.schema.constraints import IsDuration, Matches, NoneOf
from setpoint.core.schema.shape import Default
from setpoint.core.unstructured import text_at
from setpoint.core.values.json_types import Json
from setpoint.core.wait.wait_for import ONE_CRITERION, PATH_FORM, WAIT_CRITERIA
from setpoint.kind.typed_spec import OBJECT_NAME, Maybe, SpecStruct, ValueFrom
from setpoint.kinds.kubernetes_object.managed_fields import setpoint_projection

GROUP: Final = "setpoint.dev"
VERSION: Final = "v1alpha1"
NAME: Final = "KubernetesObject"
MANIFEST: Final = "spec.manifest"
_IGNORED: Final = replace(PATH_FORM, advice="a path such as spec.replicas")
_NOT_IDENTITY: Final = NoneOf(
    ("apiVersion", "kind", "metadata", "metadata.name", "metadata.namespace"),
    "a field that does not identify the object: one that does cannot be ignored",
)
IN_CLUSTER_ALONE: Final = Check(
    AnyOf(Not(Is("inCluster", True)), Not(AnyOf(NotEmpty("context"), Given("kubeconfig")))),
    "the cluster around setpoint has no context and no kubeconfig: write inCluster alone",
    "inCluster",
)
_HANDED_OVER: Final = Matches(r"[^\s/]+", "the name of a field manager, as in managedFields", 128, or_empty=False)
_NO_CONTROLLER: Final = NoneOf(
    ("cloud-controller-manager", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"),
    "a manager that applies manifests: a controller of the cluster goes on with what it writes",
)
_Manager: TypeAlias = Annotated[str, _HANDED_OVER, _NO_CONTROLLER]
_MAX_MANAGERS: Final = 20
# A bound of the API server's estimate.
_MAX_IGNORED: Final = 1000


class KubeconfigSpec(SpecStruct, frozen=True):
    """A kubeconfig that is kept in a Secret."""

    valueFrom: ValueFrom
    """Where the kubeconfig is kept. It has to be self-contained: no paths of files, no exec plugins."""


class ClusterSpec(SpecStruct, frozen=True):
    """The cluster of the object."""

    context: Maybe[str] = UNSET
    """A context of the kubeconfig: of the one named here, else of `KUBECONFIG` or `~/.kube/config`."""
    kubeconfig: Maybe[KubeconfigSpec] = UNSET
    """A kubeconfig that is kept in a Secret."""
    inCluster: Maybe[bool] = UNSET
    """Whether it is the cluster that setpoint itself runs in, as the service account of its pod."""

    __checks__: ClassVar = (IN_CLUSTER_ALONE,)


if TYPE_CHECKING:

    class _WaitCriteria(SpecStruct, frozen=True):
        """A field for each criterion of `waitFor`."""

else:
    _WaitCriteria = defstruct(
        "_WaitCriteria",
        [
            (
                one.member,
                Annotated[
                    Maybe[one.accepts], Meta(extra_json_schema={"description": one.description}), *one.constraints
                ],
                UNSET,
            )
            for one in WAIT_CRITERIA
        ],
        bases=(SpecStruct,),
        module=__name__,
        frozen=True,
    )


class WaitForSpec(_WaitCriteria, frozen=True):
    """The wait after the object is as declared: exactly one of the criteria in `WAIT_CRITERIA`, and a timeout."""

    timeout: Annotated[Maybe[str | int], IsDuration(), Default("10m")] = UNSET
    """How long: one budget for all of it, as `90s`, `10m` or a number of seconds."""

    __checks__: ClassVar = (ONE_CRITERION,)


PropagationPolicy: TypeAlias = Literal["Background", "Foreground", "Orphan"]


class DeletionSpec(SpecStruct, frozen=True):
    """How the object is deleted."""

    propagation: Annotated[Maybe[PropagationPolicy], Default("Background")] = UNSET
    """When the objects that it owns are deleted: after it, before it, or not at all."""
    timeout: Annotated[Maybe[str | int], IsDuration(), Default("5m")] = UNSET
    """How long finalizers may hold the object before the deletion is reported as failed. It continues after that."""


class KubernetesObjectSpec(SpecStruct, frozen=True):
    """The spec of a KubernetesObject."""

    manifest: dict[str, Any] | str
    """The object: as a map, or as the text of one YAML document. Values of other resources go in as `$ref`."""
    cluster: Maybe[ClusterSpec] = UNSET
    """The cluster of the object; when left out, the cluster that stores this resource, or the current context."""
    serviceAccountName: Annotated[Maybe[str], OBJECT_NAME, Default("setpoint")] = UNSET
    """The ServiceAccount of this namespace as which the object is read and written; for resources kept in a cluster."""
    waitFor: Maybe[WaitForSpec] = UNSET
    """What is waited for once the object is as declared."""
    ignoreFields: Maybe[Annotated[list[Annotated[str, _IGNORED, _NOT_IDENTITY]], Meta(max_length=_MAX_IGNORED)]] = UNSET
    """Paths in the object that are set at creation and left to other writers afterwards, such as `spec.replicas`."""
    deleteProtection: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the object must not be deleted, nor replaced."""
    forceConflicts: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether fields are taken over from other field managers."""
    takeOverFrom: Maybe[Annotated[list[_Manager], Meta(max_length=_MAX_MANAGERS)]] = UNSET
    """Field managers that no longer apply the object, such as `Terraform`: their fields become this resource's."""
    replace: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the object may be deleted and created anew: for another name, kind or cluster, or an immutable field."""
    deletion: Maybe[DeletionSpec] = UNSET
    """How the object is deleted."""


class KubernetesObjectTree(Struct, frozen=True):
    """What the author of a KubernetesObject writes."""

    spec: KubernetesObjectSpec


class ObjectReference(Struct, frozen=True):
    """An object in a cluster."""

    apiVersion: str
    """Its group and version."""
    kind: str
    """Its kind."""
    name: str
    """Its name."""
    uid: str
    """Distinguishes it from an earlier object of the same name."""
    namespace: str | UnsetType = UNSET
    """Its namespace, if it has one."""


class OutputStatus(Struct, frozen=True):
    """The output of the resource, which other resources may refer to."""

    state: Literal["null", "unknown", "known"]
    """`null`: nothing is tracked. `unknown`: there is no value yet, and dependants wait. `known`: it is in `value`."""
    value: Any = UNSET
    """The object, reduced to the path that is waited for."""
    reason: str | UnsetType = UNSET
    """Why it is unknown."""
    since: str | UnsetType = UNSET
    """Since when it is unknown."""
    last: Any = UNSET
    """The value that was known before, for the operator to read: dependants do not get it."""


class KubernetesObjectStatus(Struct, frozen=True):
    """The status of a KubernetesObject."""

    output: OutputStatus | UnsetType = UNSET
    """The value that the resource offers to its dependants, of a `field` wait: null, unknown or known."""
    object: ObjectReference | UnsetType = UNSET
    """The object itself."""


class LiveObject(Struct, frozen=True):
    """The live object, reduced to fields that KubernetesObjects own: no defaults, no status, no other field."""

    apiVersion: str
    kind: str
    uid: str
    is_deleting: bool
    kept: Any


def live_object(live: Json) -> LiveObject:
    """The object that the API server sent, reduced to those fields."""
    names = (text_at(live, "apiVersion"), text_at(live, "kind"), text_at(live, "metadata", "uid"))
    is_deleting = bool(text_at(live, "metadata", "deletionTimestamp"))
    return LiveObject(*names, is_deleting, setpoint_projection(live).to_data())
