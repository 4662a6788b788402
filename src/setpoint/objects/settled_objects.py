"""Objects that are still as their last apply left them: seen by one read, without the engine.

Most of what Terraform plans has not changed. To load the engine takes longer than all else that is done for such an
object. What is compared is what the engine compares: the fields that KubernetesObjects own.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from setpoint import __version__
from setpoint.core.unstructured import text_at
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.errors import KindNotServed

if TYPE_CHECKING:
    from setpoint.clients.kubernetes.client import KubernetesClient
    from setpoint.clients.kubernetes.discovery import ApiResource
    from setpoint.objects.recent_answers import RecentAnswers


class SettledObject(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object as an apply left it: where it is, and digests of what it was."""

    location: str
    # The live digest of the engine's cookie.
    live: str
    # A digest of the fields that are shown of it, and of the version of setpoint that compared it.
    shown: str
    # How its kind is served, where that is not known by itself.
    plural: str = ""
    is_cluster_scoped: bool = False

    def served(self, api_version: str, kind: str) -> "ApiResource | None":
        """How its kind is served, if it is still of this kind."""
        # Imported on use: a process that reaches no cluster needs no client.
        from setpoint.clients.kubernetes.builtin_kinds import api_resource, builtin_kinds

        if not self.location.startswith(f"{api_version} {kind} "):
            return None
        if not self.plural:
            return builtin_kinds().get((api_version, kind))
        return api_resource(api_version, kind, self.plural, namespaced=not self.is_cluster_scoped)

    def is_as_applied(self, live: Json, fields: Mapping[str, str]) -> bool:
        """Whether a live object, with these fields, is as the apply left it, by this version of setpoint."""
        from setpoint.kinds.kubernetes_object.spec import live_object

        return self.shown == shown_digest(fields) and self.live == digest(live_object(live))

    async def read(
        self, client: "KubernetesClient", answers: "RecentAnswers", names: tuple[str, ...]
    ) -> Json | Missing:
        """The live object, by its apiVersion, kind, namespace and name; None when there is none.

        MISSING when its kind is not served as it was, and has to be looked up.
        """
        from setpoint.clients.response_bodies import decode_tree
        from setpoint.objects.recent_answers import RecentAnswer

        api_version, kind, namespace, name = names
        served = self.served(api_version, kind)
        if served is None:
            return MISSING
        sent_at = answers.now()
        try:
            body = await client.get(served.endpoint(namespace, name))
        except KindNotServed:
            return MISSING
        if body is None:
            return None
        live = decode_tree(msgspec.json.Decoder(dict[str, Any]), body, self.location)
        if text_at(live, "kind") != kind:
            return MISSING
        answers.keep(self.location, RecentAnswer(sent_at, body))
        return live


def shown_digest(fields: Mapping[str, str]) -> str:
    """Identifies the fields that are shown of an object, and the version of setpoint that shows them."""
    return digest([__version__, dict(fields)])[:16]
