"""Programs that make files of this repository; the package does not hold them."""
