"""Text from outside, as it may be shown to a person."""


def shown(text: object) -> str:
    """Return text in which every character that cannot be seen is written as its escape.

    Line ends, terminal codes and marks that turn the direction of writing come from files and tables; printed as they
    are, they could fake or hide lines of ours.

    >>> print(shown("red\\x1b[31m\\nnext"))
    red\\x1b[31m\\nnext
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))
