#!/bin/sh
# tools/check_docs.sh PROGRAM: fails when what the documents show is not what the program prints. CTest runs it as
# e2e.docs_are_current.
cd "$(dirname "$0")/.." || exit 1
status=0
fail() {
  echo "$1" >&2
  status=1
}

"$1" docs | diff -u docs/cli.md - || fail "docs/cli.md is not what the program says; run: make docs"

# Commands may take a key of it by itself; the whole of it stands there once.
[ "$(grep -c '^| `--train\.batch`' docs/cli.md)" = 1 ] || fail "docs/cli.md has the configuration more than once"

# The README's ladder, by its columns, and no second one of another form.
header=$("$1" ladder --device=cpu --top --steps=1 --model.layers=1 --model.heads=1 --model.width=8 --model.context=8 \
  --model.vocab=16 --train.batch=1 | grep '^rung  ')
[ "$(grep '^rung  ' README.md)" = "$header" ] || fail "README.md's ladder is not of the form that the program prints: $header"

# The traced step: each line shown must be one that its command prints. Without CUDA there is no such kernel to show.
case $("$1" --version) in
  *"CUDA: not built in"*) echo "docs/architecture.md's trace: SKIPPED, built without CUDA" ;;
  *)
    trace=$(awk '/^<!-- traced -->/ { on = 1 } /^## / { on = 0 } on && /^```/ { code = !code; next } on && code' \
      docs/architecture.md)
    printed=$(mktemp)
    "$1" $(echo "$trace" | sed -n '1s/^tokamak //p') > "$printed"
    stale=$(echo "$trace" | sed 1d | grep -vx '\.\.\.' | grep -vxFf "$printed")
    rm "$printed"
    [ -z "$stale" ] || fail "docs/architecture.md shows what its command does not print: $stale"
    ;;
esac

exit $status
