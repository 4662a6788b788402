"""The sort of a JSON value, in words: what an error says instead of the value itself."""


def sort_of(value: object) -> str:
    """Such as "a number"; never anything of the value."""
    match value:
        case None:
            return "missing or null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case _:
            return "an object"
