"""What `make check` demands beyond the linters: budgets and hygiene."""
