#!/usr/bin/env python3
"""compare_runs.py lets equal runs pass and finds one changed number in every kind of file. Standard library only."""

import json
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).with_name("compare_runs.py")


def npy(values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}\n".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(values)}f", *values)


def safetensors(values, **notes):
    header = json.dumps({"0.weight": {"dtype": "F64", "shape": [len(values)], "data_offsets": [0, 8 * len(values)]},
                         "__metadata__": notes}).encode()
    return struct.pack("<Q", len(header)) + header + struct.pack(f"<{len(values)}d", *values)


def table(values):
    return "".join(["name,y\n", *(f"row,{value!r}\n" for value in values)]).encode()


def summary(values, device="cpu", **more):
    return json.dumps({"device": device, "seconds": len(device), "values": values, "text": "same", **more}).encode()


MAKERS = {"a.npy": npy, "a.safetensors": safetensors, "a.csv": table, "summary.json": summary}


class CompareRuns(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.first, self.second = Path(folder.name, "first"), Path(folder.name, "second")
        for run in (self.first, self.second):
            (run / "deep").mkdir(parents=True)

    def write(self, name, first, second):
        for run, content in ((self.first, first), (self.second, second)):
            (run / "deep" / name).write_bytes(content)

    def run_it(self, *options):
        done = subprocess.run([sys.executable, SCRIPT, self.first, self.second, *options], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_equal_runs_pass(self):
        for name, make in MAKERS.items():
            self.write(name, make([1.0, 2.5]), make([1.0, 2.5]))
        for options in ([], ["--exact"]):
            self.assertEqual(self.run_it(*options)[0], 0)

    def test_an_interval_is_as_long_as_its_farthest_end(self):
        near_zero = {"proved": [-1e-3, 10.0], "proved_by_seed": [[-1e-3, 10.0]], "epochs": 2}
        for low, code in ((-1.1e-3, 0), (-0.9, 1)):
            for changed in ({"proved": [low, 10.0]}, {"proved_by_seed": [[low, 10.0]]}):
                self.write("summary.json", summary([1.0], **near_zero), summary([1.0], **{**near_zero, **changed}))
                self.assertEqual(self.run_it()[0], code)
        self.write("summary.json", summary([1.0], **near_zero), summary([1.0], **{**near_zero, "proved": [-1e-3]}))
        self.assertEqual(self.run_it()[0], 1)

    def test_a_changed_number_is_found(self):
        for name, make in MAKERS.items():
            with self.subTest(name):
                self.write(name, make([1.0, 2.0]), make([1.0, 2.5]))
                for options in ([], ["--exact"]):
                    code, text = self.run_it(*options)
                    self.assertEqual(code, 1)
                    self.assertIn(f"FAIL deep/{name}", text)
                    self.assertIn("2.0e-01", text)
            self.write(name, make([1.0]), make([1.0]))

    def test_rounding_passes_but_is_not_the_same(self):
        for name, make in MAKERS.items():
            with self.subTest(name):
                self.write(name, make([1.0, 2.0]), make([1.0, 2.0 + 2.0**-21]))
                code, text = self.run_it()
                self.assertEqual((code, "2.4e-07" in text), (0, True), text)
                self.assertEqual(self.run_it("--exact")[0], 1)
            self.write(name, make([1.0]), make([1.0]))

    def test_a_nan_in_one_run_is_found(self):
        for name in ("a.npy", "a.safetensors", "a.csv"):
            with self.subTest(name):
                self.write(name, MAKERS[name]([1.0, 2.0]), MAKERS[name]([1.0, float("nan")]))
                self.assertEqual(self.run_it()[0], 1)
            self.write(name, MAKERS[name]([1.0]), MAKERS[name]([1.0]))

    def test_machine_and_time_may_differ_and_words_may_not(self):
        self.write("summary.json", summary([1.0], "cpu"), summary([1.0], "cuda:0"))
        for options in ([], ["--exact"]):
            self.assertEqual(self.run_it(*options)[0], 0)
        self.write("a.csv", b"seconds,y\n1.5,2\n", b"seconds,y\n2.5,2\n")
        for options in ([], ["--exact"]):
            self.assertEqual(self.run_it(*options)[0], 0)
        self.write("a.safetensors", safetensors([1.0], seconds="9.5"), safetensors([1.0], seconds="11"))
        for options in ([], ["--exact"]):
            self.assertEqual(self.run_it(*options)[0], 0)
        self.write("a.safetensors", safetensors([1.0], net="a"), safetensors([1.0], net="b"))
        self.assertEqual(self.run_it("--exact")[0], 1)
        self.write("a.safetensors", safetensors([1.0]), safetensors([1.0]))
        self.write("summary.json", summary([1.0], all_hold=True), summary([1.0], all_hold=False))
        self.assertEqual(self.run_it()[0], 1)

    def test_the_course_of_a_solver_may_differ_between_devices_only(self):
        self.write("summary.json", summary([1.0], sweeps=4), summary([1.0], sweeps=5))
        self.assertEqual(self.run_it()[0], 0)
        self.assertEqual(self.run_it("--exact")[0], 1)

    def test_trained_nets_have_a_tolerance_of_their_own(self):
        self.write("a.csv", table([1.0, 2.0]), table([1.0, 2.001]))
        self.assertEqual(self.run_it()[0], 1)
        for word in ("epochs", "steps"):
            self.write("summary.json", summary([1.0], **{word: 20}), summary([1.0], **{word: 20}))
            self.assertEqual(self.run_it()[0], 0)
            self.assertEqual(self.run_it("--tolerance", "trained.csv=1e-5")[0], 1)

    def test_rows_of_other_words_have_a_size_of_their_own(self):
        rows = "net,how,i,y\nplain,alone,1,1e40\nplain,alone,2,5\nnormed,alone,1,2.0\nnormed,alone,2,{}\n"
        self.write("a.csv", rows.format(1).encode(), rows.format(1.0001).encode())
        code, text = self.run_it()
        self.assertEqual((code, "5.0e-05" in text), (1, True), text)

    def test_what_feeds_on_itself_may_differ_between_devices_only(self):
        rows = "how,y\nalone,{}\nrollout,{}\n"
        panels = lambda a, b: json.dumps({"panels": [{"how": "alone", "end": a}, {"how": "rollout", "end": b}]}).encode()
        for name, make in {"a.csv": lambda a, b: rows.format(a, b).encode(), "summary.json": panels}.items():
            with self.subTest(name):
                self.write(name, make(1, 2), make(1, 3))
                self.assertEqual(self.run_it()[0], 0)
                self.assertEqual(self.run_it("--exact")[0], 1)
                self.write(name, make(1, 2), make(2, 2))
                self.assertEqual(self.run_it()[0], 1)
            self.write(name, make(1, 1), make(1, 1))
        self.write("summary.json", summary([1.0], largest_found_by_seed=[1]), summary([1.0], largest_found_by_seed=[2]))
        self.assertEqual(self.run_it()[0], 0)
        self.assertEqual(self.run_it("--exact")[0], 1)

    def test_missing_cut_and_unreadable_files_are_found(self):
        (self.first / "only.csv").write_text("y\n1\n")
        self.assertIn("only in", self.run_it()[1])
        (self.first / "only.csv").unlink()
        for name, make in MAKERS.items():
            with self.subTest(name):
                self.write(name, make([1.0, 2.0]), make([1.0, 2.0])[:-9])
                self.assertEqual(self.run_it()[0], 1)
            self.write(name, make([1.0]), make([1.0]))

    def test_no_files_are_no_success(self):
        self.assertEqual(self.run_it()[0], 1)


if __name__ == "__main__":
    unittest.main()
