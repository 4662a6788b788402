"""A fake `go` command: a shell script with a scripted result."""

from pathlib import Path

# Output of `go mod edit -json` for a Kubernetes with two staging modules.
GO_MOD = """
{
  "Go": "1.26.0",
  "Require": [
    {"Path": "go.etcd.io/etcd/api/v3", "Version": "v3.6.8"},
    {"Path": "go.etcd.io/etcd/server/v3", "Version": "v3.6.8", "Indirect": true}
  ],
  "Replace": [
    {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
    {"Old": {"Path": "example.com/mended"}, "New": {"Path": "example.com/fork", "Version": "v1.0.0"}},
    {"Old": {"Path": "k8s.io/client-go"}, "New": {"Path": "./staging/src/k8s.io/client-go"}}
  ]
}
"""

GOOD_BUILD = """
echo "go: downloading k8s.io/api v0.36.3" >&2
echo k8s.io/api/core/v1 >&2
for name in kube-apiserver kubectl kube-controller-manager server; do
  echo "#!/bin/sh" > bin/$name; chmod +x bin/$name
done
"""

BAD_BUILD = """
echo k8s.io/api/core/v1 >&2
echo "# k8s.io/apiserver/pkg/server" >&2
echo "server.go:1:2: undefined: everything" >&2
echo k8s.io/client-go/rest >&2
exit 1
"""


def write_go(folder: Path, build: str, download: str = """echo '{"GoMod": "theirs.mod"}'""") -> Path:
    """A program `go` in `folder`: shell script `download` is `go mod download`, and `build` is `go build`."""
    folder.mkdir(parents=True, exist_ok=True)
    go = folder / "go"
    go.write_text(
        f"""#!/bin/sh
case "$1 $2" in
"mod download") {download} ;;
"mod edit") cat <<'END'
{GO_MOD}
END
;;
"build -v") {build} ;;
*) exit 9 ;;
esac
""",
        encoding="utf-8",
    )
    go.chmod(0o755)
    return go
