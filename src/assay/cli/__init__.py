"""The command line: `assay learn | verify | predict | methods | warmup`."""


def main() -> None:
    """Run the command that the user typed."""
    from assay.cli.app import app

    app(prog_name="assay")
