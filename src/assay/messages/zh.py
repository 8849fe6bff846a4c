"""The sentences of `assay.messages.en` in Chinese, as pages show them."""

MESSAGES = {
    "sentences": "{parts:}",
    "file.encoding": "{file} 不是 UTF-8 编码，已按 {encoding} 读取。如果文字显示不对，请另存为 UTF-8。",
    "clip.classes": "“计入的最大误差”只用于回归：分类的错误率总在 0 与 1 之间。",
}
