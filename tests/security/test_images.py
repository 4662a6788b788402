"""Images are pinned by digest where we name them, and those that are not are pointed out."""

import re
from pathlib import Path

import pytest

from setpoint.deployment.installation import Installation
from tests.cli.workspace import Workspace, user_environment

DIGEST = f"sha256:{'0a' * 32}"
DOCKERFILE = Path("Dockerfile").read_text(encoding="utf-8")


def test_every_stage_of_the_image_starts_from_a_digest() -> None:
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    named = dict(re.findall(r"^ARG (\w+)=(\S+)", DOCKERFILE, re.MULTILINE))

    images = [named[base[2:-1]] if base.startswith("${") else base for base in bases]
    assert len(images) == 2
    assert all(re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", image) for image in images)


@pytest.mark.parametrize(
    ("image", "is_mutable"),
    [
        ("setpoint:0.1.0", True),
        ("setpoint", True),
        ("registry.example.com:5000/setpoint:latest", True),
        (f"setpoint@{DIGEST}", False),
        (f"registry.example.com:5000/setpoint:0.1.0@{DIGEST}", False),
        ("setpoint@sha256:abc", True),
        (f"setpoint@{DIGEST}:latest", True),
    ],
)
def test_an_image_without_a_digest_is_mutable(image: str, is_mutable: bool) -> None:
    pinned = f"x@{DIGEST}"

    assert Installation(image=image).mutable_images() == ((image,) if is_mutable else ())
    for name in ("KBS_IMAGE_NAME", "KBS_IMAGE_NAME_MICROSERVICES", "OPERATOR_IMAGE_NAME"):
        other = Installation(image=pinned, environment=((name, image), ("PLAIN", "setpoint:1")))
        assert other.mutable_images() == ((image,) if is_mutable else ())


def test_an_installation_warns_of_a_mutable_image_and_takes_a_digest(tmp_path: Path) -> None:
    with Workspace(tmp_path, user_environment()) as workspace:
        tagged = workspace.run(
            "install", "--dry-run", "--image", "r.example/setpoint:1", "--env", "KBS_IMAGE_NAME=kbs:2"
        )
        pinned = workspace.run("install", "--dry-run", "--image", f"r.example/setpoint@{DIGEST}")

    assert [line.split(" is ")[0] for line in tagged.stderr.splitlines()] == ["r.example/setpoint:1", "kbs:2"]
    assert (pinned.returncode, pinned.stderr) == (0, "")
    assert f"image: r.example/setpoint@{DIGEST}" in pinned.stdout
    assert "r.example/setpoint:1" in tagged.stdout


def test_the_notes_of_the_chart_point_out_a_mutable_image() -> None:
    notes = Path("deploy/helm/setpoint/templates/NOTES.txt").read_text(encoding="utf-8")

    assert "if not .Values.image.digest" in notes
