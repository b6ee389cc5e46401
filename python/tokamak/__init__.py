"""A thin door to the program `tokamak`, which does all the work: train from a dictionary, read metrics, evaluate, generate,
and arrays in and out by Python's buffer protocol (NumPy, PyTorch and array.array speak it). Needs nothing but Python.

    import tokamak
    run = tokamak.train({"model": {"preset": "small"}, "data": {"path": "data"}, "train": {"steps": 100}}, "run")
    print(run.metrics()[-1]["loss"], run.generate("Once", tokens=20)[0]["text"])
    weights = run.weights()  # {"wte.weight": memoryview of float32 (V, C), ...}
"""
from tokamak.arrays import read_safetensors, write_safetensors, write_tokens
from tokamak.program import TokamakError, call, path
from tokamak.run import Run, train

__all__ = ["Run", "TokamakError", "call", "path", "read_safetensors", "train", "write_safetensors", "write_tokens"]
