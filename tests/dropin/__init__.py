"""scikit-learn's own tests with Assay's classes in them: `python -m tests.dropin [file ...]`."""
