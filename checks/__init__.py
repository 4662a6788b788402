"""The checks of `make check` beyond the linters: budgets, hygiene and structure."""
