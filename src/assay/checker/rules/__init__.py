"""Mathematics of facts that several families share, in plain NumPy and with bounds on its own rounding."""
