"""ONNX graphs, one module a family of models, by the name of the family."""
