#!/bin/sh
# All checks that need no build. Runs every one, then fails if any did.
cd "$(dirname "$0")/.." || exit 1
status=0
for check in layers sizes names tests links format; do
  python3 "tools/check_$check.py" || status=1
done
python3 tools/mutants.py --check || status=1
exit $status
