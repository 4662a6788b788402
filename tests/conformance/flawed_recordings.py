"""Recordings that are expected to fail, each with its reason, and the correction of the recording with which it passes.

A recording has a flaw where what it expects would be wrong on Google's APIs, or where a name in it was blanked so that
it cannot be told from another one. What `setpoint` sends instead is what the corrected recording expects.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True)
class Flaw:
    """Why a recording fails; texts of its `http.log` with what stands there in the corrected one."""

    reason: str
    corrections: Sequence[tuple[str, str]]
    # A call that the corrected recording does not have: the beginning of the request, and which one of several it is.
    dropped: tuple[str, int] | None = None


_BLANKED_ALIKE: Final = (
    "two addresses of one list have the same placeholder, and the replay takes the second for a repetition of the first"
)
_ADDRESS: Final = '"projects/${projectId}/regions/us-central1/addresses/'
_NAT: Final = Flaw(
    f"{_BLANKED_ALIKE}; and the deletion of the NAT is recorded as a PATCH without members, which changes nothing: "
    "the list that has become empty is missing in it, and the router is read with the NAT once more",
    [
        (
            f'{_ADDRESS}${{addressID}}",\n              {_ADDRESS}${{addressID}}"',
            f'{_ADDRESS}computeaddress-2-${{uniqueId}}",\n              {_ADDRESS}computeaddress-3-${{uniqueId}}"',
        ),
        (
            "/routers/${routerID}\nContent-Type: application/json\n\n{}\n",
            '/routers/${routerID}\nContent-Type: application/json\n\n{"nats": []}\n',
        ),
    ],
    dropped=("GET https://compute.googleapis.com/compute/v1/projects/${projectId}/regions/us-central1/routers/", -1),
)
_SERVICE: Final = '"projects/${projectId}/global/backendServices/computeurlmap-kompanion'


def _route(path: str, service: str) -> tuple[str, str]:
    """The part of a URL map that sends requests for a path somewhere, without and with the backend service."""
    was = (
        f'"prefixMatch": "{path}"\n            }}\n          ],\n          "priority": 1,\n'
        '          "routeAction": {\n            "weightedBackendServices": [\n              {\n'
    )
    return was, f'{was}                "backendService": {_SERVICE}-{service}-${{uniqueId}}",\n'


def _matcher(name: str, service: str, more: str) -> tuple[str, str]:
    was = f'      "name": "{name}"{more}\n'
    return was, f'      "defaultService": {_SERVICE}-{service}-${{uniqueId}}",\n{was}'


_DELETION: Final = "DELETE https://compute.googleapis.com/compute/v1/projects/${projectId}/global/addresses/"
_WITHOUT_CONNECTION: Final = (
    "GET https://servicenetworking.googleapis.com/v1/services/servicenetworking.googleapis.com/connections"
    "?network=projects%2F${projectNumber}%2Fglobal%2Fnetworks%2F${networkID}\n\n"
    "200 OK\nContent-Type: application/json; charset=UTF-8\n\n{}\n"
)
FLAWED: Final[Mapping[str, Flaw]] = {
    "certificatemanagercertificateselfmanaged": Flaw(
        "the certificate is recorded without the private key that the manifest takes from a Secret: no service could "
        "use it",
        [
            (
                '-----END CERTIFICATE-----"\n  }\n}\n\n200 OK',
                '-----END CERTIFICATE-----",\n    "pemPrivateKey": "EXAMPLE-PRIVATE-KEY\\n"\n  }\n}\n\n200 OK',
            )
        ],
    ),
    "computerouternat": _NAT,
    "computerouternat-direct": _NAT,
    "computeurlmap-kompanion": Flaw(
        "the URL map is recorded without the backend services that the manifest refers to: it would route nothing",
        [
            ('  "hostRules": [', f'  "defaultService": {_SERVICE}-default-${{uniqueId}}",\n  "hostRules": ['),
            _matcher("chaosmonkey-cloudnetworks-x-gcpnp-anz", "chaosmonkey", ","),
            _matcher("chaosmonkeymulti-cloudnetworks-x-gcpnp-anz", "chaosmonkeymulti", ","),
            _matcher("computeurlmap-kompanion-default", "default", ""),
            _route("/status/*", "chaosmonkey"),
            _route("/helloworld", "chaosmonkeymulti"),
        ],
    ),
    "fullsecretmanagersecret-manual-legacy": Flaw(
        "the manifest changes the ttl: Config Connector sends the time of expiry that the secret has already, so that "
        "the new ttl takes no effect; what the author wrote is sent",
        [
            ("updateMask=annotations%2CexpireTime%2C", "updateMask=annotations%2Cttl%2C"),
            (
                '"name": "projects/${projectId}/secrets/secretmanagersecret-${uniqueId}",',
                '"name": "projects/${projectId}/secrets/secretmanagersecret-${uniqueId}",\n  "ttl": "110s",',
            ),
        ],
    ),
    "globalcomputeforwardingrule-direct": Flaw(
        "the recording blanked the name of the network, `default`, in the name of a member, too: `${networkID}Service`",
        [('"${networkID}Service"', '"defaultService"')],
    ),
    "monitoringdashboardbasic": Flaw(
        "Config Connector updated the dashboard once before the manifest changed, with what it had created it with",
        [],
        dropped=("PATCH https://monitoring.googleapis.com/v1/projects/${projectId}/dashboards/", 0),
    ),
    "servicenetworkingconnection": Flaw(
        f"{_BLANKED_ALIKE}; and the connection is not read once its peering is removed, so that its end cannot be seen",
        [
            (_DELETION, f"{_WITHOUT_CONNECTION}\n---\n\n{_DELETION}"),
            *(
                (
                    f'"${{addressID}}",\n{indent}"${{addressID}}"',
                    f'"computeaddress1-${{uniqueId}}",\n{indent}"computeaddress2-${{uniqueId}}"',
                )
                for indent in ("    ", "      ", "        ")
            ),
        ],
    ),
}


def write_corrected(recording: Path, folder: Path) -> Path:
    """A copy of a recording without its flaw; the recording has to have it."""
    flaw, copy = FLAWED[recording.name], folder / recording.name
    shutil.copytree(recording, copy)
    log = (copy / "http.log").read_text(encoding="utf-8")
    for was, corrected in flaw.corrections:
        assert was in log, f"{recording.name} has no such flaw: {was}"
        log = log.replace(was, corrected)
    if flaw.dropped is not None:
        calls, (begin, place) = log.split("\n---\n"), flaw.dropped
        calls.remove([one for one in calls if one.lstrip().startswith(begin)][place])
        log = "\n---\n".join(calls)
    (copy / "http.log").write_text(log, encoding="utf-8")
    return copy
