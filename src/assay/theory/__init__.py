"""Learning theory as pure functions: numbers in, a number out that errs only on the safe side.

Each function states its theorem, what the theorem assumes and where it is proved. Upper bounds are rounded
up and lower bounds down, so that a checker with exact arithmetic never finds them too good.
"""
