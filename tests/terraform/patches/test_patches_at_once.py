"""Two patches of one field that are written at once: the second one gives its fields back, and says so."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from setpoint.objects.patch import ApplyPatch, PatchForecast, PatchSession, PatchTarget
from setpoint.objects.patch_record import NO_RECORD, PatchRecord
from setpoint.terraform.connections.clusters import ClusterConnections
from setpoint.terraform.framework.call import CallContext
from setpoint.terraform.framework.diagnostics import DiagnosticsError
from setpoint.terraform.patches.patch_schema import PATCH_SCHEMA
from setpoint.terraform.patches.patch_state import PatchNotes
from setpoint.terraform.patches.patch_write import PatchWrite
from tests.cluster.access import Access
from tests.terraform.patches.configurations import managers_in

FIRST, SECOND = "111111111111", "222222222222"


class OvertakenSession(PatchSession):
    """Another patch is written between its forecast and its write."""

    other: PatchSession

    async def forecast_patch(self, record: PatchRecord, *, is_restored: bool, is_tested: bool = True) -> PatchForecast:
        """See PatchSession."""
        found = await super().forecast_patch(record, is_restored=is_restored, is_tested=is_tested)
        await self.other.observe()
        theirs = await self.other.forecast_patch(NO_RECORD, is_restored=True)
        assert await self.other.write(NO_RECORD, theirs, 60.0) is None
        return found


def test_the_second_of_two_patches_of_one_field_gives_its_fields_back(
    api_server: Access, namespace: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(api_server.kubeconfig))
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    tree = {"metadata": {"name": "settings"}, "data": {"colour": "red", "size": "1"}}
    assert api_server.call("POST", path, tree).status == 201
    target = PatchTarget("v1", "ConfigMap", "settings", namespace)
    notes = PatchNotes(tmp_path, "/project")

    async def main() -> tuple[PatchSession, str]:
        clusters = ClusterConnections()
        session = clusters.session(None)
        first = PatchSession(session, FIRST, target, ApplyPatch({"data": {"colour": "blue"}}))
        second = OvertakenSession(session, SECOND, target, ApplyPatch({"data": {"colour": "blue", "size": "2"}}))
        second.other = first
        await second.observe()
        names = {"api_version": "v1", "kind": "ConfigMap", "name": "settings", "namespace": namespace}
        planned: dict[str, Any] = {**dict.fromkeys(PATCH_SCHEMA.attributes), "id": SECOND, "target": names}
        write = PatchWrite(second, planned, None, CallContext(), notes, None)
        try:
            with pytest.raises(DiagnosticsError) as refused:
                await write.run(NO_RECORD, is_new=True, is_tested=True)
        finally:
            await session.clusters.close()
            await session.client.close()
        return first, str(refused.value.diagnostics)

    first, said = asyncio.run(main())
    live = api_server.call("GET", f"{path}/settings").body

    assert first.met_patches == []
    assert "The field is patched already" in said
    assert f"data.colour: the setpoint_patch with the id {FIRST} has it" in said
    assert live["data"] == {"colour": "blue", "size": "1"}
    assert managers_in(live) == [f"setpoint/terraform-patch/{FIRST}"]
    assert list(tmp_path.rglob("*222*")) == []
