"""Going on for ever: what turns one step into a controller."""
