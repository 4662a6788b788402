"""Many processes over one real API server, killed again and again: `make soak ARGS="--cluster --kills 20"`."""
