#!/bin/sh
# tools/check_docs.sh PROGRAM: fails when docs/cli.md is not what the program writes. CTest runs it as e2e.docs_are_current.
cd "$(dirname "$0")/.." || exit 1
"$1" docs | diff -u docs/cli.md - && exit 0
echo "docs/cli.md is not what the program says; run: make docs" >&2
exit 1
