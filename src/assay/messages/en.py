"""The sentences of the library in English, the source of the other languages; see `assay.messages`."""

MESSAGES = {
    "sentences": "{parts: }",
    "file.encoding": "{file} is not UTF-8; it was read as {encoding}. If its letters look wrong, save it as UTF-8.",
    "clip.classes": "{--clip} is for regression: the error rate of a classifier lies between 0 and 1.",
    "clip.classes@page": "The largest error that counts is for regression: the error rate of a classifier lies between 0 and 1.",
}
