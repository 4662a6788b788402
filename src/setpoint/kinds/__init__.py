"""One module or package per kind, and what several of them need to read a manifest."""
