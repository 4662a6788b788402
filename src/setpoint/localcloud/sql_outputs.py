"""What Cloud SQL says about an instance that nobody asked for: addresses, links, certificates."""

import hashlib
from datetime import datetime, timedelta
from typing import Final

from setpoint.localcloud.clock import stamp
from setpoint.localcloud.projects import project_number
from setpoint.localcloud.sql_versions import Engine, find_version, upgradable
from setpoint.localcloud.trees import Tree, member

API: Final = "https://sqladmin.googleapis.com/sql/v1beta4"
_GEMINI: Final = {
    Engine.MYSQL: {"flagRecommenderEnabled": True},
    Engine.POSTGRES: {"googleVacuumMgmtEnabled": False, "oomSessionCancelEnabled": False},
    Engine.SQLSERVER: {},
}


def instance_link(project: str, name: str) -> str:
    """Where the real service would have the instance: the local one answers with the same links."""
    return f"{API}/projects/{project}/instances/{name}"


def outputs(project: str, instance: Tree, created: datetime) -> Tree:
    """Everything the service adds to a complete instance. The same instance always gets the same."""
    name, settings = instance["name"], instance["settings"]
    version = find_version(instance["databaseVersion"])
    assert version is not None
    gemini = {"activeQueryEnabled": False, "entitled": False, "indexAdvisorEnabled": False, **_GEMINI[version.engine]}
    result: Tree = {
        "backendType": "SECOND_GEN",
        "connectionName": f"{project}:{instance['region']}:{name}",
        "createTime": stamp(created),
        "databaseInstalledVersion": version.installed,
        "gceZone": settings["locationPreference"]["zone"],
        "geminiConfig": gemini,
        "ipAddresses": _addresses(f"{project}/{name}", settings["ipConfiguration"], version.engine),
        "project": project,
        "satisfiesPzi": True,
        "selfLink": instance_link(project, name),
        "serverCaCert": _certificate(project, name, created),
        "serviceAccountEmailAddress": _service_account(project, name),
        "sqlNetworkArchitecture": "NEW_NETWORK_ARCHITECTURE",
        "state": "RUNNABLE",
    }
    if version.upgrades:
        result["upgradableDatabaseVersions"] = upgradable(version)
    if settings["availabilityType"] == "REGIONAL" and "secondaryZone" in settings["locationPreference"]:
        result["secondaryGceZone"] = settings["locationPreference"]["secondaryZone"]
    if member(settings, "ipConfiguration.pscConfig.pscEnabled"):
        mark = _mark(f"{project}/{name}")[:12]
        result["dnsName"] = f"{mark}.{mark}.{instance['region']}.sql.goog."
        result["pscServiceAttachmentLink"] = (
            f"projects/{mark}-tp/regions/{instance['region']}/serviceAttachments/a-{mark}-psc-service-attachment"
        )
    return result


def _addresses(place: str, network: Tree, engine: Engine) -> list[Tree]:
    # From the ranges kept for documentation: nobody can mistake one for a real server.
    last = int(_mark(place)[:2], 16) % 254 + 1
    addresses: list[Tree] = []
    if network["ipv4Enabled"]:
        addresses.append({"ipAddress": f"203.0.113.{last}", "type": "PRIMARY"})
        if engine is Engine.POSTGRES:
            addresses.append({"ipAddress": f"198.51.100.{last}", "type": "OUTGOING"})
    if network.get("privateNetwork"):
        addresses.append({"ipAddress": f"10.0.0.{last}", "type": "PRIVATE"})
    return addresses


def _certificate(project: str, name: str, created: datetime) -> Tree:
    mark = _mark(f"{project}/{name}/ca")
    return {
        "cert": f"-----BEGIN CERTIFICATE-----\n{mark}\n-----END CERTIFICATE-----\n",
        "certSerialNumber": "0",
        "commonName": f"C=US,O=Google\\, Inc,CN=Google Cloud SQL Server CA,dnQualifier={mark[:36]}",
        "createTime": stamp(created),
        "expirationTime": stamp(created + timedelta(days=3650)),
        "instance": name,
        "kind": "sql#sslCert",
        "sha1Fingerprint": mark[:40],
    }


def _service_account(project: str, name: str) -> str:
    return f"p{project_number(project)}-{_mark(name)[:6]}@gcp-sa-cloud-sql.iam.gserviceaccount.com"


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
