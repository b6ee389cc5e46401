"""What scripts share that compare the program's numbers with another's."""
import subprocess
import sys


class Checks:
    def __init__(self, program):
        self.program = program
        self.failed = 0

    def report(self, name, got, expected, most):
        good = abs(got - expected) <= most
        self.failed += not good
        print(f"{'ok    ' if good else 'FAILED'} {name}: {got:.6f}, expected {expected:.6f}", flush=True)

    def run(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{arguments}: {done.stderr}")
        return done.stdout
