"""Models that read a table: an encoding and a model of the encoded rows (`checker.rules.encodings`)."""

from assay.checker.family import Family, Variant
from assay.checker.rules.encodings import read_table

FAMILY = Family("table", {"": Variant({}, read_table, members=True, parameters=True, encodes=True)})
