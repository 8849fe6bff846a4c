"""What studio and service have in common: listening on an address, connections that must not dawdle, limits of bodies.

It needs the extra `studio` or `serve`.
"""
