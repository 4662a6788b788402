"""How the outside world is reached. Every foreign failure becomes one of our errors here."""
