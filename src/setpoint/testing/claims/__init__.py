"""The claims of the lifecycle contract, a module for each chapter. Only the contract imports them."""
