#!/bin/sh
# tools/docs_site.sh: the documents as a site with search, build/docs-site/site, which needs no network and no server.
# Its generator, mkdocs-material, comes from PyPI; where that is not to be had it says so and is no error.
set -eu
cd "$(dirname "$0")/.."
out=build/docs-site
python=$out/python
mkdir -p "$out"

skip() {
  echo "docs-site: SKIPPED, $1"
  exit 0
}

if ! cmp -s tools/docs_requirements.txt "$python/installed"; then
  rm -rf "$python"
  python3 -m venv "$python" > "$out/pip.log" 2>&1 || skip "python3 has no venv (apt-get install python3-venv)"
  "$python/bin/pip" install --quiet --disable-pip-version-check --timeout=10 --retries=1 \
    --requirement=tools/docs_requirements.txt > "$out/pip.log" 2>&1 || {
    rm -rf "$python"
    skip "mkdocs-material could not be had from PyPI ($out/pip.log)"
  }
  cp tools/docs_requirements.txt "$python/installed"
fi

python3 tools/docs_pages.py "$out/pages"
cp tools/mkdocs.yml "$out/mkdocs.yml"
mkdir -p "$out/pages/assets"
cp tools/docs_worker.js "$out/pages/assets/iframe-worker.js"
# Warnings are errors: a page that is in no menu, a link or an anchor that leads nowhere.
NO_MKDOCS_2_WARNING=1 "$python/bin/mkdocs" build --quiet --strict --clean --config-file="$out/mkdocs.yml"
if grep -rqE '<(script|img|iframe)[^>]* src="https?:|<link rel="(stylesheet|preload|preconnect)"[^>]* href="https?:' "$out/site" --include='*.html'; then
  echo "docs-site: a page of $out/site loads something from the network" >&2
  exit 1
fi
echo "docs-site: $(find "$out/site" -name '*.html' | wc -l) pages, $out/site/index.html"
