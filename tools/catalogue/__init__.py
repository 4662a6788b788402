"""Makes src/setpoint/catalogue/google from facts, exceptions and Google's discovery documents: `make catalogue`.

`facts/` says what is known of each kind; rules (`fields`, `methods`) hold it against the discovery documents and
correct it; `exceptions/` has the last word, a line for each odd fact.
"""
