"""YAML merge keys: read as kubectl reads them."""

import json
import subprocess
from pathlib import Path

from setpoint.core.values.yaml_documents import read_documents

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
ANCHORS = "x: &x {a: '1', b: '1'}\ny: &y {<<: *x, b: '2'}\n"
DATA = (
    "data:\n  <<: *x\n",
    "data:\n  <<: *y\n  a: '3'\n",
    "data:\n  <<: [*x, *y, {c: '4'}]\n",
    "data:\n  <<: [*y, *x]\n  c: '5'\n",
    "data:\n  <<: []\n  '<<': '6'\n",
    "data: {<<: {a: '7'}, b: '7'}\n",
)


def test_manifests_with_merge_keys_are_read_as_by_kubectl(kubectl_program: Path) -> None:
    text = "---\n".join(f"{HEAD}{ANCHORS}{data}" for data in DATA)
    command = [str(kubectl_program), "label", "--local", "-f", "-", "-o", "jsonpath={.data}{'\\n'}", "x=y"]
    ran = subprocess.run(command, input=text.encode(), check=True, capture_output=True)

    read = [document.value["data"] for document in read_documents(text, "a.yaml") if isinstance(document.value, dict)]
    assert read == [json.loads(line) for line in ran.stdout.splitlines()]
