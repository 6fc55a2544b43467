"""Adds up what the parts of script/test did and prints one line: N passed, N failed.

The argument is a file with one line a part: name, exit status and JUnit report (- for none),
separated by tabs. A part without a report counts as one test; a part that failed although its
report shows no failure (it crashed, or ran nothing) counts as one failed test more. Where X.xml has
an X.alone.xml beside it, a test that failed in the first and passed in the second has passed, and
is named. With --failed REPORT it only prints how many tests of that report failed.
"""

import os
import sys
import xml.etree.ElementTree as ElementTree


def count(report: str) -> tuple[list[str], list[str]]:
    """The names of passed tests and of failed ones. Skipped tests are neither."""
    passed: list[str] = []
    failed: list[str] = []
    if not os.path.exists(report):
        return passed, failed
    for suite in ElementTree.parse(report).iter("testsuite"):
        for case in suite.findall("testcase"):
            outcome = {child.tag for child in case}
            name = f"{case.get('classname') or suite.get('name')}: {case.get('name')}"
            if outcome & {"failure", "error"}:
                failed.append(name)
            elif "skipped" not in outcome:
                passed.append(name)
    return passed, failed


def main() -> int:
    if sys.argv[1] == "--failed":
        print(len(count(sys.argv[2])[1]))
        return 0
    passed, failed, alone = 0, [], []
    with open(sys.argv[1], encoding="utf-8") as parts:
        for line in parts:
            name, status, report = line.rstrip("\n").split("\t")
            good, bad = count(report)
            mended = set(count(report.removesuffix(".xml") + ".alone.xml")[0])
            if status != "0" and not bad:
                bad = [f"{name}: exit status {status}"]
            elif status == "0" and not os.path.exists(report):
                good = [name]
            passed += len(good) + sum(name in mended for name in bad)
            alone += [name for name in bad if name in mended]
            failed += [name for name in bad if name not in mended]
    for name in alone:
        print(f"PASSED ONLY ALONE {name}")
    for name in failed:
        print(f"FAILED {name}")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
