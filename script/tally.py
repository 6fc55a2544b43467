"""Adds up what the parts of script/test did and prints one line: N passed, N failed.

The argument is a file with one line a part: name, exit status and JUnit report (- for none),
separated by tabs. A part without a report counts as one test; a part that failed although its
report shows no failure (it crashed, or ran nothing) counts as one failed test more.
"""

import os
import sys
import xml.etree.ElementTree as ElementTree


def count(report: str) -> tuple[int, list[str]]:
    """Passed tests and the names of the failed ones. Skipped tests are neither."""
    passed, failed = 0, []
    for suite in ElementTree.parse(report).iter("testsuite"):
        for case in suite.findall("testcase"):
            outcome = {child.tag for child in case}
            if outcome & {"failure", "error"}:
                failed.append(f"{case.get('classname') or suite.get('name')}: {case.get('name')}")
            elif "skipped" not in outcome:
                passed += 1
    return passed, failed


def main() -> int:
    passed, failed = 0, []
    with open(sys.argv[1], encoding="utf-8") as parts:
        for line in parts:
            name, status, report = line.rstrip("\n").split("\t")
            here: list[str] = []
            if report != "-" and os.path.exists(report):
                count_passed, here = count(report)
                passed += count_passed
            elif status == "0":
                passed += 1
            if status != "0" and not here:
                here = [f"{name}: exit status {status}"]
            failed += here
    for name in failed:
        print(f"FAILED {name}")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
