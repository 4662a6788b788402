"""Which class the kind of a row is of."""

from collections.abc import Mapping
from typing import Final

from setpoint.catalogue.rows import KindFacts
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.variants.clusters import ClusterKind
from setpoint.kinds.gcp.generic.variants.connections import ConnectionKind
from setpoint.kinds.gcp.generic.variants.databases import DatabaseKind
from setpoint.kinds.gcp.generic.variants.identities import IdentityKind
from setpoint.kinds.gcp.generic.variants.made_ids import MadeIdKind
from setpoint.kinds.gcp.generic.variants.networks import NetworkKind
from setpoint.kinds.gcp.generic.variants.parts import PartKind
from setpoint.kinds.gcp.generic.variants.projects import ProjectKind
from setpoint.kinds.gcp.generic.variants.roles import RoleKind

_BY_NAME: Final[Mapping[str, type[GoogleKind]]] = {
    "ComputeNetwork": NetworkKind,
    "ContainerCluster": ClusterKind,
    "IAMCustomRole": RoleKind,
    "Project": ProjectKind,
    "ServiceIdentity": IdentityKind,
    "ServiceNetworkingConnection": ConnectionKind,
    "SpannerDatabase": DatabaseKind,
}


def kind_class(row: KindFacts) -> type[GoogleKind]:
    """The class of the kind of a row."""
    found = _BY_NAME.get(row.kind)
    if found is not None:
        return found
    if row.inside is not None:
        return PartKind
    return MadeIdKind if row.id.where == "service" else GoogleKind
