"""A copy of the sources in which changes are built and tested."""
import filecmp
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Own:
    """Of a test without a change."""
    fault: str  # empty: it passes
    seconds: float


class Tree:
    def __init__(self, root, folder, least_limit):
        self.source, self.least_limit = folder / "source", least_limit
        self.own = {}
        self.copy(root)
        shared = folder / "shared"  # of data that tests may need, beside the sources
        if (root.parent / "shared").exists() and not shared.exists():
            shared.symlink_to((root.parent / "shared").resolve())

    def copy(self, root):
        """Only what differs is written, so that little is built again."""
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, stdout=subprocess.PIPE,
                                text=True, check=True).stdout.splitlines()
        wanted = {name for name in listed if (root / name).is_file()}
        for name in wanted:
            to = self.source / name
            if to.exists() and filecmp.cmp(root / name, to, shallow=False):
                continue
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, to)
        for path in self.source.rglob("*"):
            name = path.relative_to(self.source)
            if path.is_file() and name.parts[0] != "build" and str(name) not in wanted:
                path.unlink()

    def run(self, rule):
        """One change: its result, the seconds that it took, and the test that noticed it."""
        start = time.monotonic()

        def result(kind, by=""):
            return {"result": kind, "seconds": round(time.monotonic() - start, 1), "by": by}

        for test in rule.tests:
            if fault := self.fault_unchanged(rule, test):
                return result("broken", f"without the change: {fault}")
        path = self.source / "src" / rule.file
        text = path.read_text()
        path.write_text(text.replace(rule.old, rule.new))
        try:
            if not self.build(rule.programs):
                return result("does not build")
            for test in rule.tests:
                if failed := self.first_failure(test, max(self.least_limit, 10 * self.own[test].seconds)):
                    return result("wrongly called equivalent" if rule.equivalent else "killed", failed)
            return result("equivalent" if rule.equivalent else "survived")
        finally:
            path.write_text(text)

    def fault_unchanged(self, rule, test):
        """What a test fails with by itself, in which case it says nothing about a change; else its time is noted."""
        if test not in self.own:
            fault = "" if self.build(rule.programs) else f"{' '.join(rule.programs)} does not build"
            start = time.monotonic()
            fault = fault or self.first_failure(test, 600)
            self.own[test] = Own(fault, time.monotonic() - start)
        return self.own[test].fault

    def build(self, programs):
        for program in programs:
            # Quiet, and as a user's build: it configures what is not configured yet.
            done = subprocess.run(["nice", "tools/build.sh", "release", program], cwd=self.source, capture_output=True)
            if done.returncode != 0:
                return False
        return True

    def first_failure(self, test, limit):
        """The name of a test that fails; empty where none does."""
        program, *arguments = test.split()
        [file] = [p for p in (self.source / "build/release").rglob(program) if p.is_file() and os.access(p, os.X_OK)]
        # Threads that spin would block each other.
        process = subprocess.Popen([file, "--gtest_fail_fast", "--gtest_brief=1", *arguments], cwd=self.source,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                   env={**os.environ, "OMP_WAIT_POLICY": "passive"}, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"no end of {program} after {limit:.0f} s"
        if re.search(r"^\[=+\] 0 tests from", output, re.M):
            return f"{test} chooses no test"
        if process.returncode == 0:
            return ""
        found = re.search(r"^\[  FAILED  \] ([\w/.]+)", output, re.M)
        return found.group(1) if found else f"{program} ends with status {process.returncode}"
