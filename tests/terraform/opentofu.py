"""OpenTofu, built from its published Go module: for machines that have no Terraform."""

from typing import Final

from tests.go_programs import GoProgram

OPENTOFU: Final = GoProgram("OpenTofu", "tofu", "github.com/opentofu/opentofu@v1.12.6", "./cmd/tofu")
