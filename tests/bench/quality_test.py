#!/usr/bin/env python3
"""What bench/quality makes of texts and of runs."""
import json
import lzma
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "quality"))
import corpus_select  # noqa: E402
import corpus_text  # noqa: E402
import curve  # noqa: E402
import table  # noqa: E402


def line(step, wall, ms, val_loss=None):
    return {"step": step, "loss": 1, "ms": ms, "tokens_per_second": 1000.0, "wall_seconds": wall} | (
        {} if val_loss is None else {"val_loss": val_loss})


def a_run(row, seed, points, diverged=False):
    keys = ("step", "tokens", "loss", "first", "start")
    return {"row": row, "seed": seed, "diverged": diverged, "ms": 1.0,
            "curve": [dict(zip(keys, point)) for point in points]}


class Curves(unittest.TestCase):
    def test_counts_time_from_the_first_step_and_from_the_start(self):
        points = curve.curve([line(1, 110, 2000), line(2, 111, 1000, 5.0), line(3, 115, 1000, 4.0)], [100])
        self.assertEqual([(p["first"], p["start"], p["tokens"]) for p in points], [(3, 11, 3000), (7, 15, 4000)])

    def test_time_between_two_processes_does_not_count(self):
        points = curve.curve([line(1, 110, 2000), line(2, 111, 1000, 5.0), line(3, 1012, 1000, 4.0)], [100, 1000])
        self.assertEqual([(p["first"], p["start"]) for p in points], [(3, 11), (4, 23)])

    def test_a_start_without_steps_that_were_kept_does_not_count(self):
        self.assertEqual(curve.curve([line(1, 210, 2000, 5.0)], [100, 200])[0]["start"], 10)

    def test_a_loss_is_reached_on_a_line_between_validations(self):
        points = a_run("x", 1, [(10, 100, 5.0, 1.0, 2.0), (20, 200, 3.0, 3.0, 4.0), (30, 300, 2.0, 5.0, 6.0)])["curve"]
        self.assertEqual(curve.reached(points, 3.5),
                         {"step": 17.5, "tokens": 175, "loss": 3.5, "first": 2.5, "start": 3.5})
        self.assertEqual(curve.reached(points, 6.0)["step"], 10)
        self.assertEqual(curve.reached(points, 2.0)["step"], 30)
        self.assertIsNone(curve.reached(points, 1.9))

    def test_a_torn_line_is_passed_over(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "metrics.jsonl"
            path.write_text('{"step": 1}\n{"ste')
            self.assertEqual(curve.read_metrics(path), [{"step": 1}])


class Tables(unittest.TestCase):
    runs = [
        a_run("adamw", 1, [(10, 1, 4.0, 10, 12), (20, 2, 3.0, 20, 22)]),
        a_run("adamw", 2, [(10, 1, 4.0, 10, 12), (20, 2, 3.2, 20, 22)]),
        a_run("muon", 1, [(10, 1, 3.1, 12, 14), (20, 2, 2.8, 24, 26)]),
        a_run("muon", 2, [(10, 1, 3.3, 12, 14), (20, 2, 2.9, 24, 26)]),
        a_run("lion", 1, [(20, 2, 3.05, 24, 26)]),
        a_run("lion", 2, [(20, 2, 3.5, 24, 26)]),
        a_run("sgd", 1, [], diverged=True),
    ]

    def test_the_target_is_the_mean_of_the_references_ends(self):
        self.assertAlmostEqual(table.target_of(self.runs, "adamw"), 3.1)
        self.assertIsNone(table.target_of(self.runs, "adafactor"))

    def test_shares_are_of_the_references_whole_runs(self):
        adamw, muon, lion, sgd = table.rows(self.runs, "adamw")[1]
        self.assertEqual(adamw["share"], {"step": 1, "first": 1, "start": 1})
        self.assertAlmostEqual(muon["reached"]["step"], (10 + 15) / 2)
        self.assertAlmostEqual(muon["share"]["step"], 12.5 / 20)
        self.assertAlmostEqual(muon["share"]["first"], (12 + 18) / 2 / 20)
        self.assertAlmostEqual(muon["difference"], -0.25)
        self.assertAlmostEqual(muon["error"], 0.05)
        self.assertNotIn("reached", lion)
        self.assertEqual((lion["hits"], sgd["diverged"]), (1, 1))

    def test_only_runs_of_one_kind_are_compared(self):
        runs = [{"row": row, "identity": {"recipe": text, "tokens": tokens}}
                for row, text, tokens in (("a", "old", 9), ("a", "new", 9), ("a", "new", 8), ("b", "old", 9))]
        self.assertEqual(table.comparable(runs, {"tokens": 9}), [runs[1], runs[3]])

    def test_each_line_has_all_cells(self):
        text = table.format_table(self.runs, "adamw")
        lines = [part for part in text.splitlines() if part.startswith("|")]
        self.assertEqual({part.count("|") for part in lines}, {len(table.HEADS) + 1})
        self.assertIn("1 of 2 reach it", text)
        self.assertIn("1, 1 diverged", text)
        table.format_table([], "adamw")
        table.format_table(self.runs[2:], "adamw")


class Texts(unittest.TestCase):
    def test_a_page_is_its_main_text(self):
        page = ("<html><head><title>T</title></head><body><nav>menu</nav><main><h1>Head</h1><p>One &amp;\n two</p>"
                "<ul><li>a<li>b</ul><pre>x\n  y</pre></main><footer>f</footer></body></html>")
        text, is_page = corpus_text.text_of("a/b.html", page.encode())
        self.assertTrue(is_page)
        self.assertEqual(text, "Head\n\nOne & two\n\n- a\n- b\n\nx\n  y")

    def test_a_manual_page_loses_its_macros(self):
        page = b".\\\" c\n.TH X 1\n.SH NAME\n.B x\n\\- does \\fIit\\fP\n"
        text, _ = corpus_text.text_of("usr/share/man/man1/x.1", page)
        self.assertEqual(text, "NAME\nx\n- does it")

    def test_bytes_that_are_no_text_are_passed_over(self):
        self.assertIsNone(corpus_text.text_of("x.txt", b"a\0b"))
        self.assertIsNone(corpus_text.text_of("x.gz", b"no gzip"))

    def test_nothing_long_is_there_twice(self):
        sentence = "It is known that the words of a sentence are in the order that the writer gave to them, as here."
        first, second = (" ".join(f"{sentence} {word}" for word in words) for words in (["one"] * 5, ["two"] * 5))
        selection = corpus_select.Selection()
        documents = list(selection.take(f"{first}\n\n{second}", False))
        self.assertEqual(documents, [f"{first}\n\n{second}"])
        self.assertEqual(list(selection.take(f"{first}\n\n{second}", False)), [])
        third = second.replace("two", "four")
        self.assertEqual(list(selection.take(f"{first}\n\n{third}", False)), [third])

    def test_tables_and_other_languages_are_no_prose(self):
        self.assertFalse(corpus_select.is_prose("12 34 56\n" * 200))
        self.assertFalse(corpus_select.is_prose("Der Hund und die Katze sind nicht im Haus gewesen. " * 20))

    def test_long_texts_are_cut_at_paragraphs(self):
        text = "\n\n".join(f"{i} " + "word " * 2000 for i in range(40))
        pieces = list(corpus_select.pieces(text))
        self.assertEqual("\n\n".join(piece.strip() for piece in pieces).split(), text.split())
        self.assertTrue(all(len(piece) < 2 * corpus_select.PIECE for piece in pieces))


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.corpus, self.out = pathlib.Path(folder.name) / "corpus", pathlib.Path(folder.name) / "out"
        self.corpus.mkdir()
        parts = ("train", "val")
        (self.corpus / "manifest.json").write_text(json.dumps({part: {"sha256_of_lines": part} for part in parts}))
        for part in parts:
            (self.corpus / f"{part}.jsonl.xz").write_bytes(lzma.compress(b'{"text": "x"}\n'))

    def call(self, *options):
        program = ROOT / "tests/bench/fake_program.py"
        command = [sys.executable, "-B", ROOT / "bench/quality/run.py", program, self.corpus, self.out,
                   "--steps=40", "--evals=8", "--eval-tokens=16", "--seeds=1,2", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done

    def results(self):
        return json.loads((self.out / "results.json").read_text())["runs"]

    def test_finished_runs_are_kept_and_others_done(self):
        self.call("adamw")
        before = self.results()
        self.assertEqual([run["curve"][-1]["step"] for run in before], [40, 40])
        self.assertEqual(list(self.out.glob("runs/*/run/checkpoints")), [])
        done = self.call("adamw", "adamw@0.5", "--tune=muon", "--lr=0.2,2", "--gpus=3")
        self.assertEqual(done.returncode, 0)
        after = self.results()
        self.assertEqual(after[:2], before)
        self.assertEqual(len(after), 8)
        lines = {part.split(" | ")[0]: part for part in done.stdout.splitlines() if part.startswith("| ")}
        self.assertIn("0 of 2 reach it", lines["| adamw@0.5"])
        self.assertIn("2 diverged", lines["| muon:optimizer.lr=2"])
        self.assertIn("| 50.0 |", lines["| muon:optimizer.lr=0.2"])  # of the steps

    def test_other_batches_have_as_many_tokens(self):
        self.call("adamw:train.batch=4", "adamw:train.batch=1")
        self.assertEqual([run["curve"][-1]["step"] for run in self.results()], [20, 80, 20, 80])

    def test_a_run_that_fails_is_told_and_tried_again(self):
        done = self.call("adamw:optimizer.lr=-1", "adamw")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no memory", done.stdout)
        self.assertEqual(len(self.results()), 2)

    def test_the_length_of_runs_is_what_the_reference_does_in_the_time(self):
        for _ in range(2):
            self.call("muon", "--steps=0", "--train-seconds=0.04")
            self.assertEqual([run["curve"][-1]["step"] for run in self.results()], [40, 40])
            self.assertEqual(len(json.loads((self.out / "results.json").read_text())["lengths"]), 1)

    def test_no_run_is_begun_behind_the_end_of_time(self):
        self.call("adamw", "--seconds=0")
        self.assertEqual(self.results(), [])


if __name__ == "__main__":
    unittest.main()
