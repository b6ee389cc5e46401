#!/usr/bin/env python3
"""Adds up CTest's JUnit reports: names what failed or was skipped, and ends with "N passed, N failed".

count_tests.py --failed-parts N REPORT...: N is the number of CI parts that failed. A part that failed without a failed
test (a check, a build) counts as one failure, so that the last line never looks better than the run was.
"""
import argparse
import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--failed-parts", type=int, default=0)
    parser.add_argument("reports", nargs="+")
    options = parser.parse_args()
    passed = failed = skipped = failed_reports = 0
    for report in options.reports:
        if not Path(report).exists():
            continue
        failures = 0
        for case in ET.parse(report).getroot().iter("testcase"):
            status = case.get("status")
            if status == "run":
                passed += 1
            elif status == "notrun":
                skipped += 1
                print(f"skipped: {Path(report).parent.name}: {case.get('name')}")
            else:
                failures += 1
                print(f"failed: {Path(report).parent.name}: {case.get('name')}")
        failed += failures
        failed_reports += failures > 0
    failed += max(0, options.failed_parts - failed_reports)
    if skipped:
        print(f"{skipped} skipped")
    print(f"{passed} passed, {failed} failed")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
