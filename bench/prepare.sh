#!/usr/bin/env bash
# bench/prepare.sh [COPIES]: speed and memory of `tokamak prepare` on the books of ../shared/data, COPIES times one after
# the other (default 12: 214 MB), with GPT-2's vocabulary, with one thread and with two, three times in turn; then the
# training of a vocabulary. Files lie in memory (/dev/shm), so no disk is measured. PRIORITY is put before each run, as
# in PRIORITY="chrt -f 50" on a machine with other work.
set -euo pipefail
cd "$(dirname "$0")/.."
tokamak=build/release/bin/tokamak
copies=${1:-12}
folder=$(mktemp -d /dev/shm/tokamak_bench_XXXXXX)
trap 'rm -rf "$folder"' EXIT

zcat ../shared/data/books/classic-books-sample.txt.gz > "$folder/books"
for ((i = 0; i < copies; ++i)); do cat "$folder/books"; done > "$folder/books.txt"
bytes=$(stat -c %s "$folder/books.txt")

measure() {  # what it is called, then options of prepare
  local name=$1
  shift
  rm -rf "$folder/out"
  ${PRIORITY:-} /usr/bin/time -f "%e %U %S %M" -o "$folder/time" \
    "$tokamak" prepare "$folder/books.txt" --out="$folder/out" "$@" > /dev/null 2>&1
  awk -v name="$name" -v bytes="$bytes" '{
    printf "%-30s %7.2f s %8.1f MB/s %8.2f s of CPU time %8.1f MB/s of CPU time %6d MB resident\n",
           name, $1, bytes / $1 / 1e6, $2 + $3, bytes / ($2 + $3) / 1e6, $4 / 1024 }' "$folder/time"
}

echo "$bytes bytes of text, $(nproc) cores, $(uptime | sed 's/.*load/load/')"
for round in 1 2 3; do
  for threads in 1 2; do
    measure "encode, threads=$threads" --vocab=../shared/data/gpt2 --threads=$threads
  done
done
for threads in 1 2; do
  measure "train 32768, threads=$threads" --vocab-size=32768 --threads=$threads
done
