#!/usr/bin/env python3
"""tests/python/tokamak_test.py PROGRAM: the Python package in python/ against that program. CTest runs it as e2e.python."""
import array
import os
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))
import tokamak  # noqa: E402

TINY = {"model": {"layers": 1, "heads": 2, "width": 32, "context": 16, "vocab": 300},
        "train": {"batch": 2, "steps": 3, "eval_every": 0}, "device": "cpu", "threads": 1}


class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_arrays_survive_files(self):
        file = self.folder / "x.safetensors"
        matrix = memoryview(array.array("f", [1, 2, 3, 4, 5, 6])).cast("B").cast("f", [2, 3])
        tokamak.write_safetensors(file, {"a": matrix, "b": array.array("i", [7]), "none": array.array("d")})
        read = tokamak.read_safetensors(file)
        self.assertEqual(read["a"].shape, (2, 3))
        self.assertEqual(read["a"].tolist(), [[1, 2, 3], [4, 5, 6]])
        self.assertEqual((read["b"].format, read["b"].tolist()), ("i", [7]))
        self.assertEqual(len(read["none"]), 0)

    def test_broken_files_are_told(self):
        file = self.folder / "x.safetensors"
        tokamak.write_safetensors(file, {"a": array.array("f", [1, 2, 3])})
        whole = file.read_bytes()
        for broken in (whole[:-4], whole[:20], b"\xff" * 40):
            file.write_bytes(broken)
            with self.assertRaisesRegex(ValueError, "x.safetensors"):
                tokamak.read_safetensors(file)
        with self.assertRaisesRegex(ValueError, "one dimension of uint16"):
            tokamak.write_tokens(file, array.array("f", [1]))

    def test_a_run_from_a_dictionary(self):
        tokens = array.array("H", (i * i % 300 for i in range(2000)))
        run = tokamak.train(TINY, self.folder / "run", tokens=tokens)
        self.assertEqual([step["step"] for step in run.metrics()], [1, 2, 3])
        self.assertEqual(run.config()["model"]["width"], 32)
        self.assertEqual([folder.name for folder in run.checkpoints()], ["step_00000003"])
        weights = run.weights()
        table = weights["wte.weight"] if "wte.weight" in weights else weights["transformer.wte.weight"]
        self.assertEqual((table.format, table.shape), ("f", (300, 32)))
        self.assertGreater(run.evaluate(data=self.folder / "run/tokens.npy")["val"]["loss"], 0)

    def test_a_run_on_text_tells_what_happened_and_writes(self):
        (self.folder / "text.txt").write_text("the cat sat on the mat. " * 200)
        tokamak.call("prepare", self.folder / "text.txt", out=self.folder / "data", vocab_size=300)
        config = {**TINY, "model": {**TINY["model"], "vocab": 0}, "data": {"path": str(self.folder / "data")}}
        run = tokamak.train(config, self.folder / "run")
        self.assertEqual([event["event"] for event in run.events()], ["start", "save", "end"])
        self.assertEqual(run.events()[1]["checkpoint"], "step_00000003")
        texts = run.generate("the cat\n\u00e9", tokens=3, samples=2, temperature=0)
        self.assertEqual(len(texts), 2)
        self.assertEqual(texts[0]["prompt"], "the cat\n\u00e9")
        self.assertEqual((len(texts[0]["tokens"]), texts[0]["finish"]), (3, "length"))
        self.assertEqual(texts[0]["tokens"], texts[1]["tokens"], "greedily")
        with self.assertRaisesRegex(tokamak.TokamakError, "tokens"):
            run.generate("the", tokens=-1)

    def test_mistakes_come_with_the_message(self):
        with self.assertRaisesRegex(tokamak.TokamakError, "did you mean") as caught:
            tokamak.train({"model": {"layerz": 1}}, self.folder / "run")
        self.assertEqual(caught.exception.status, 1)


if __name__ == "__main__":
    os.environ["TOKAMAK_PROGRAM"] = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
