#!/bin/sh
# tools/check_package.sh BUILD: installs what is built there into BUILD/package_test/prefix, then configures, builds and runs
# examples/own_model as a project of its own that finds it. CTest runs it as e2e.package.
set -eu
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
out=$build/package_test
prefix=$out/prefix
rm -rf "$out"
cmake --install "$build" --prefix "$prefix" > "$build/package_test.log"

"$prefix/bin/tokamak" --version
for file in man/man1/tokamak-train.1 man/man5/tokamak-config.5 bash-completion/completions/tokamak \
  zsh/site-functions/_tokamak zsh/vendor-completions/_tokamak fish/vendor_completions.d/tokamak.fish; do
  [ -s "$prefix/share/$file" ] || { echo "share/$file was not installed"; exit 1; }
done

# What the libraries are linked with is what their Debian package depends on.
if command -v dpkg-query >/dev/null 2>&1; then
  depends=$(sed -n 's/^set(CPACK_DEBIAN_LIBRARIES_PACKAGE_DEPENDS "\(.*\)")/\1/p' "$build/CPackConfig.cmake")
  for library in $(grep -oh '/usr/lib/[^;>" ]*' "$prefix"/lib/cmake/Tokamak/TokamakTargets*.cmake | sort -u); do
    package=$(dpkg-query -S "$library" 2>/dev/null | sed -n '1s/:.*//p')
    case ", $depends, " in
      *", $package, "*) ;;
      *) echo "libtokamak-dev links $library and does not depend on '$package': cmake/TokamakPackage.cmake"; exit 1 ;;
    esac
  done
fi

export CMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)"
cmake -G Ninja -S examples/own_model -B "$out/own_model" -DCMAKE_PREFIX_PATH="$prefix" > "$out/own_model.log"
cmake --build "$out/own_model" >> "$out/own_model.log" || { cat "$out/own_model.log"; exit 1; }
"$out/own_model/own_model" docs/guides/own_text.md 200 > "$out/own_model.txt"
awk '/^step 1:/ { first = $4 } /^step 200:/ { last = $4 } { print }
     END { if (!(last > 0 && last < first - 1)) { print "the loss did not fall by 1"; exit 1 } }' "$out/own_model.txt"
