"""The sentences of `assay.messages.en` in Chinese, as pages show them."""

MESSAGES = {
    "sentences": "{parts:}",
    "clip.classes": "“计入的最大误差”只用于回归：分类的错误率总在 0 与 1 之间。",
}
