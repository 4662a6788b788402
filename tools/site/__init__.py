"""The docs site: pages as they lie in the repository, built into HTML that needs no server and no other host."""
