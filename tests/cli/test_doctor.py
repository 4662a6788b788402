"""`setpoint doctor` finds real breakages, and ends in time whatever hangs."""

import asyncio
import json
import signal
import time
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path

import pytest
from aiohttp import web

from setpoint.app import AppSettings
from setpoint.cli.commands.operating.doctor import doctor
from setpoint.engine.resource import ResourceRef
from setpoint.errors import RemoteUnavailable
from setpoint.library.doctor.examination import CHECKS, Examination, examine
from setpoint.library.doctor.findings import Finding, Level
from setpoint.library.doctor.probe import Answers, ProbeResult
from setpoint.library.doctor.service_checks import check_reads
from setpoint.localcloud.faults import FailRequest
from tests.cli.workspace import Workspace, bucket
from tests.clients.loopback_servers import http_server, raw_server
from tests.clients.token_servers import EMAIL, service_account_key_text

SECONDS = 20.0


def settings_of(workspace: Workspace, **environment: str) -> AppSettings:
    variables = {**workspace.environment, **environment}
    return AppSettings(f"sqlite:///{workspace.folder}/.setpoint/state.db", environment=variables)


def found_by(settings: AppSettings, check: str, seconds: float = SECONDS) -> list[Finding]:
    return list(asyncio.run(examine(Examination(settings, seconds), [check])))


def levels(findings: list[Finding]) -> set[Level]:
    return {one.level for one in findings}


@pytest.fixture
def applied(workspace: Workspace) -> Workspace:
    """A workspace with a bucket."""
    workspace.apply(bucket("logs"))
    return workspace


def test_nothing_is_wrong_and_nothing_is_written(applied: Workspace) -> None:
    applied.in_cloud(lambda cloud: cloud.journal.clear())

    done = applied.run("doctor", "-o", "json")

    found = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout
    assert found["summary"] == {"ok": 9, "warning": 0, "error": 0}
    assert [one["check"] for one in found["findings"]] == list(CHECKS)
    assert not any(entry.is_write for entry in applied.in_cloud(lambda cloud: cloud.journal.entries))


def test_a_running_process_and_the_holder_of_the_store_are_named(applied: Workspace) -> None:
    daemon = applied.daemon()

    done = applied.run("doctor", "--only", "store,process", "-o", "json")

    daemon.interrupt()
    said = [(one["check"], one["what"], one["where"]) for one in json.loads(done.stdout)["findings"]]
    ((_, _, process),) = [one for one in said if one[0] == "process"]
    assert process.startswith("process ")
    assert ("store", f"in use by {process}", f"{applied.folder}/.setpoint/state.db") in said


def test_a_process_that_holds_the_store_and_does_not_answer_is_an_error(applied: Workspace) -> None:
    daemon = applied.daemon()
    daemon.send(signal.SIGSTOP)

    patient = applied.run("doctor", "--only", "process", "-o", "json")
    hasty = applied.run("doctor", "--only", "process", "--timeout", "100ms")

    daemon.send(signal.SIGCONT)
    daemon.interrupt()
    (found,) = json.loads(patient.stdout)["findings"]
    assert (patient.returncode, found["level"]) == (1, "error")
    assert found["what"] == "it holds the store, and does not answer"
    assert found["where"].startswith("process ")
    assert "end it by its id" in found["advice"]
    assert "no answer within 0.1 s" in hasty.stdout
    assert "end it by its id" in hasty.stdout
    assert hasty.stdout.splitlines()[-1] == "0 ok, 0 warnings, 1 error"


def test_a_damaged_page_is_an_error_that_names_the_backup(applied: Workspace) -> None:
    path = applied.folder / ".setpoint" / "state.db"
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * 4096 + whole[8192:])

    (found,) = found_by(settings_of(applied), "store")

    assert found.level is Level.ERROR
    assert "is damaged" in found.what
    assert "`setpoint restore FILE`" in found.advice


def test_a_file_that_others_can_read_is_a_warning(applied: Workspace) -> None:
    (applied.folder / ".setpoint" / "state.db").chmod(0o644)

    found = found_by(settings_of(applied), "store")

    assert [one.advice.startswith("run chmod 600") for one in found if one.level is Level.WARNING] == [True]


def test_a_refused_port_is_an_error_that_names_the_variable(applied: Workspace) -> None:
    settings = settings_of(applied, STORAGE_EMULATOR_HOST="http://127.0.0.1:1")

    endpoints, rights = found_by(settings, "endpoints"), found_by(settings, "rights")

    ((what, where, advice),) = [(one.what, one.where, one.advice) for one in endpoints if one.level is Level.ERROR]
    assert "Connection refused" in what
    assert where == "http://127.0.0.1:1 (STORAGE_EMULATOR_HOST)"
    assert advice == "correct STORAGE_EMULATOR_HOST, or start what it names"
    assert levels(rights) == {Level.WARNING}


def test_kinds_that_no_service_answers_for_are_one_finding() -> None:
    refs = [ResourceRef("a", f"Kind{number}", "default", "one") for number in range(7)]
    seen = [(ref, RemoteUnavailable("GET /: cannot connect")) for ref in refs]

    (one,) = check_reads(ProbeResult((), seen[:1], Answers()))
    (all_of_them,) = check_reads(ProbeResult((), seen, Answers()))

    assert (one.level, one.where) == (Level.WARNING, "Kind0")
    assert one.what == "1 kind could not be looked at: the service does not answer"
    assert all_of_them.what == "7 kinds could not be looked at: the service does not answer"
    assert all_of_them.where == "Kind0, Kind1, Kind2, Kind3, Kind4 and 2 more"


def test_a_clock_that_is_off_is_found_by_the_answers_of_services(applied: Workspace) -> None:
    async def late(seconds: float) -> list[Finding]:
        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            date = formatdate(time.time() + seconds, usegmt=True)
            return web.json_response({"name": "logs"}, headers={"Date": date})

        async with http_server(answer) as address:
            settings = settings_of(applied, STORAGE_EMULATOR_HOST=address)
            return list(await examine(Examination(settings, SECONDS), ["clock"]))

    assert levels(asyncio.run(late(0.0))) == {Level.OK}
    assert levels(asyncio.run(late(60.0))) == {Level.WARNING}
    (found,) = asyncio.run(late(-600.0))
    assert found.level is Level.ERROR
    assert "ahead of the service" in found.what


def test_a_server_that_never_answers_does_not_keep_the_doctor(applied: Workspace) -> None:
    async def run() -> list[Finding]:
        ended = asyncio.Event()

        async def never(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
            await ended.wait()

        async with raw_server(never) as address:
            settings = settings_of(applied, STORAGE_EMULATOR_HOST=f"http://{address}")
            found = list(await examine(Examination(settings, 0.4), ["endpoints", "rights"]))
            ended.set()
            return found

    found = asyncio.run(run())

    assert {one.check for one in found if one.level is not Level.OK} == {"endpoints", "rights"}


def test_an_expired_token_is_an_error_without_the_token(
    applied: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credentials.json"
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))

    async def run(answer: Callable[[web.BaseRequest], web.Response]) -> list[Finding]:
        async def respond(request: web.BaseRequest) -> web.StreamResponse:
            return answer(request)

        async with http_server(respond) as address:
            account = {"type": "service_account", "client_email": EMAIL, "private_key": service_account_key_text()}
            file.write_text(json.dumps({**account, "token_uri": f"{address}/token"}), encoding="utf-8")
            settings = settings_of(applied, SETPOINT_GCP_AUTH="default")
            return list(await examine(Examination(settings, SECONDS), ["credentials"]))

    refused = {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}
    (bad,) = asyncio.run(run(lambda _: web.json_response(refused, status=400)))
    token = {"access_token": "t0ken", "expires_in": 1800, "token_type": "Bearer"}
    (good,) = asyncio.run(run(lambda _: web.json_response(token)))

    assert bad.level is Level.ERROR
    assert "expired or revoked" in bad.what
    assert bad.advice.startswith("run `gcloud auth application-default login`")
    assert good.level is Level.OK
    assert "valid for 30 min" in good.what
    assert str(file) in good.where
    assert good.what.startswith(f"a token of {EMAIL}")
    assert "t0ken" not in f"{bad} {good}"


def test_an_unknown_check_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    options = {"store": "memory:", "cookies": "status", "only": ("stoer",), "acting_as": None, "timeout": "1s"}

    assert doctor(options) == 1

    assert capsys.readouterr().err.startswith("error: --only: there is no check 'stoer': write store, disk, clock,")


def test_a_resource_that_may_not_be_read_is_an_error_and_one_that_is_not_ready_a_warning(workspace: Workspace) -> None:
    workspace.in_cloud(lambda cloud: cloud.inject(FailRequest(403, path="/storage/v1/b", times=99)))
    workspace.apply(bucket("logs"))

    found = found_by(settings_of(workspace), "process")

    warned = [one.what for one in found if one.level is Level.WARNING]
    assert [one.startswith("StorageBucket default/logs is not ready: ") for one in warned] == [True]
    refused = found_by(settings_of(workspace), "rights")
    assert levels(refused) == {Level.ERROR}
    assert "403" in refused[0].what
