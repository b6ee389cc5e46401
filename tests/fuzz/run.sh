#!/bin/sh
# tests/fuzz/run.sh FOLDER PROGRAM ARGUMENT...: runs one of libFuzzer's programs, and keeps inputs that fail in FOLDER.
# The last lines say what such an input is, so that it can be had again (base64 -d) where nothing but output is kept.
folder=$1
shift
rm -rf "$folder"
mkdir -p "$folder"
"$@" -artifact_prefix="$folder/" && exit
status=$?
for input in "$folder"/*; do
  [ -f "$input" ] || { echo "fuzz: no input is kept: the program was ended from outside, or could not begin"; break; }
  echo "fuzz: $input, as base64:"
  base64 -w 0 "$input"
  echo
done
exit $status
