#!/bin/bash
# Everything that needs an NVIDIA GPU, in one call: builds, tests, measures; a short table last.
#   bench/gpu.sh OUT [PART...]     parts: test sanitize ladder steps profile xl start generate (these by default),
#                                  peers shapes (PyTorch for python3),
#                                  nccl bits sanitize_ranks (RANKS), exchange ranks meshes large rank_peers (several GPUs),
#                                  faults (two GPUs)
# BIN: folder of programs built elsewhere (then nothing is built). FILTER: pattern of the tests to run. DATA: see start.
# PEERS: folder of rank_peers' script. RANKS: how many ranks bits and sanitize_ranks have (as many as GPUs).
set -u
out=$(realpath -m "${1:?usage: bench/gpu.sh OUT [PART...]}")
shift
cd "$(dirname "$0")/.." || exit 1
mkdir -p "$out"
parts=${*:-test sanitize ladder steps profile xl start generate}
bin=${BIN:-build/release/bin}
model=--model.preset=gpt2-124m
gpus=$(nvidia-smi -L | wc -l)
ranks=${RANKS:-$gpus}

if [ -z "${BIN:-}" ]; then
  { [ -f build/release/build.ninja ] || cmake --preset release; cmake --build --preset release; } > "$out/build.log" 2>&1 ||
    { tail -40 "$out/build.log"; exit 1; }
fi

# Each program's tests in several processes a GPU, since compiling and comparing on the host take most of the time.
run_tests() {
  for program in gpu_test gpu_ops_test gpu_model_test; do
    shards=$((4 * gpus))
    [ $program = gpu_test ] && shards=$((8 * gpus))  # references of attention
    for ((shard = 0; shard < shards; ++shard)); do
      CUDA_VISIBLE_DEVICES=$((shard % gpus)) GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard \
        timeout 300 "$bin/$program" --gtest_filter="${FILTER:-*}" > "$out/$program.$shard.log" 2>&1 ||
        echo "$program shard $shard: exit status $?" &
    done
  done
  wait
  for program in gpu_test gpu_ops_test gpu_model_test; do
    echo "$program: $(cat "$out/$program".*.log | grep -c '^\[       OK') passed," \
      "$(cat "$out/$program".*.log | grep -cE '^\[  FAILED  \].*\([0-9]+ ms\)') failed," \
      "$(cat "$out/$program".*.log | grep -cE '^\[  SKIPPED \].*\([0-9]+ ms\)') skipped"
    cat "$out/$program".*.log | grep -E '^\[  FAILED  \].*ms\)' | cut -c1-110 | sort -u | head -20
  done
}

sanitize() {
  for tool in memcheck racecheck; do
    # cuDNN's kernels synchronise through the copy engine's barriers, which racecheck does not see.
    timeout 400 compute-sanitizer --tool $tool --kernel-name-exclude kernel_substring=cudnn --error-exitcode 9 \
      "$bin/gpu_model_test" \
      --gtest_filter='*Sanitized*' > "$out/$tool.log" 2>&1
    echo "$tool: exit status $?, $(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$out/$tool.log" | tail -1)"
  done
  # So do the project's own kernels for Hopper's tensor cores: memcheck only.
  timeout 200 compute-sanitizer --tool memcheck --error-exitcode 9 "$bin/gpu_test" --gtest_filter='*Sanitized*' \
    > "$out/memcheck-attention.log" 2>&1
  echo "memcheck of attention: exit status $?, $(grep 'ERROR SUMMARY' "$out/memcheck-attention.log" | tail -1)"
}

ladder() { "$bin/tokamak" ladder --device=cuda $model --train.batch=16 --out="$out/ladder-b16" 2>&1; }

# The top of the ladder at B=64, with its kernels; on two streams; and within a budget.
steps() {
  "$bin/tokamak" ladder --device=cuda $model --train.batch=64 --top --out="$out/top-b64" 2>&1
  "$bin/tokamak" ladder --device=cuda $model --train.batch=64 --top --compile.streams=2 --out="$out/streams-b64" 2>&1
  "$bin/tokamak" ladder --device=cuda $model --train.batch=64 --top --compile.memory_budget_gib=9 --out="$out/budget-b64" 2>&1
  "$bin/tokamak" explain --device=cuda $model --train.batch=64 --measure > "$out/kernels-b64.txt" 2>&1
}

# Where the time of a step goes, with every kernel, a page and a trace.
profile() {
  for batch in 16 64; do
    "$bin/tokamak" profile --device=cuda $model --train.batch=$batch --json="$out/profile-b$batch.json" \
      --page="$out/profile-b$batch.html" --trace="$out/profile-b$batch.trace.json.gz" 2>&1
  done
}

xl() {
  for batch in 16 32 40; do
    "$bin/tokamak" ladder --device=cuda --model.preset=gpt2-1558m --train.batch=$batch --top --out="$out/xl-b$batch" 2>&1
  done
}

# From the start of the process to the end of the first optimizer step, with an empty cache and with a warm one; then the
# time that a real run waits for its data. DATA: a folder with gpt2/ and wikitext-2/train.txt.
start() {
  export TOKAMAK_CACHE=$out/cache
  rm -rf "$TOKAMAK_CACHE"
  "$bin/tokamak" prepare "${DATA:-../shared/data}/wikitext-2/train.txt" --vocab="${DATA:-../shared/data}/gpt2" \
    --out="$out/data" > "$out/prepare.log" 2>&1 || { tail -3 "$out/prepare.log"; return; }
  train="$bin/tokamak train --device=cuda $model --data.path=$out/data --train.eval_every=0 --train.checkpoint_every=0"
  for state in empty warm warm; do
    begin=$(date +%s%N)
    rm -rf "$out/run"
    $train --train.batch=16 --train.steps=1 --train.out="$out/run" > "$out/start-$state.log" 2>&1
    echo "cache $state: $((($(date -r "$out/run/metrics.jsonl" +%s%N) - begin) / 1000000)) ms to the first line of metrics;" \
      "$(grep '^start' "$out/start-$state.log")"
  done
  rm -rf "$out/run"
  $train --train.batch=64 --train.steps=200 --train.out="$out/run" > "$out/run.log" 2>&1
  awk -F'"data_wait_ms":' '/data_wait_ms/ { split($2, x, ","); sum += x[1]; n++; if (x[1] > most) most = x[1] }
    END { printf "data wait of %d steps: %.4f ms on average, %.4f at most\n", n, sum / n, most }' "$out/run/metrics.jsonl"
  rm -rf "$out/run" "$out/data"
  unset TOKAMAK_CACHE
}

# Tokens a second of 124M at each number of texts side by side, and with a long context; then where a step's time goes.
generate() {
  export TOKAMAK_CACHE=$out/cache
  for dtype in bf16 fp32; do
    for rows in 1 4 8; do "$bin/bench_generate" --device=cuda $model --rows=$rows --compile.precision=$dtype 2>&1; done
  done
  "$bin/bench_generate" --device=cuda $model --rows=1 --model.context=8192 --tokens=512 --prompt=7000 2>&1
  "$bin/bench_generate" --device=cuda $model --rows=1 --kernels > "$out/generate-kernels.txt" 2>&1
  head -40 "$out/generate-kernels.txt"
  unset TOKAMAK_CACHE
}

peers() {
  python3 bench/torch_ladder.py --batch 16 2>&1 | tee "$out/torch-b16.txt"
  python3 bench/torch_ladder.py --batch 64 --only "fused AdamW" 2>&1 | tee "$out/torch-b64.txt"
}

# GPT-2 124M on the meshes of all GPUs that are there, with as much for each of them as for one alone, beside all of them
# at once each by itself (alone): the median time of a step, and the last loss. The share of a line "alone" is what
# would be left if its GPUs ended each step together. MESHES: which.
ranks() {
  export TOKAMAK_CACHE=$out/cache NCCL_NVLS_ENABLE=0
  "$bin/tokamak" prepare "${DATA:-../shared/data}/wikitext-2/train.txt" --vocab="${DATA:-../shared/data}/gpt2" \
    --out="$out/data" > "$out/prepare.log" 2>&1 || { tail -3 "$out/prepare.log"; return; }
  default="alone --mesh.data=$gpus --mesh.data=$gpus,--mesh.zero=1 --mesh.data=$gpus,--mesh.zero=2
    --mesh.data=$gpus,--mesh.zero=3 --mesh.tensor=$gpus --mesh.tensor=$gpus,--mesh.async_tensor=off
    --mesh.context=$gpus"
  printf '%-36s %8s %10s %10s %10s\n' mesh ms tokens/s "of alone" loss
  one=0
  for mesh in ${MESHES:-$default}; do
    rm -rf "$out"/run*
    case $mesh in
      alone*)
        for ((gpu = 0; gpu < gpus; ++gpu)); do
          train_on "cuda:$gpu" "${BATCH:-64}" "${mesh#alone}" "$out/run$gpu" &
        done
        wait
        ;;
      *) train_on cuda $((${BATCH:-64} * gpus)) "$mesh" "$out/run0" ;;
    esac
    one=$(python3 - "$mesh" "$one" "$out"/run*/metrics.jsonl << 'EOF'
import json, statistics, sys
mesh, one, runs = sys.argv[1], float(sys.argv[2]), [list(map(json.loads, open(path))) for path in sys.argv[3:]]
ms = [statistics.median(step["ms"] for step in steps[len(steps) // 3:]) for steps in runs]
rate = sum(steps[0]["tokens_per_second"] * steps[0]["ms"] / t for steps, t in zip(runs, ms))
if mesh.startswith("alone"):  # what GPUs would have if each step ended with the slowest of them, and nothing else were lost
    ends = [max(steps) for steps in zip(*([step["ms"] for step in steps[len(steps) // 3:]] for steps in runs))]
    share = f"{100 * len(ms) / sum(1 / t for t in ms) / statistics.median(ends):9.1f}%"
else:
    share = f"{100 * rate / one:9.1f}%" if one else " " * 10
print(f"{mesh:36} {max(ms):8.2f} {rate:10.0f} {share} {runs[0][-1]['loss']:10.5f}", file=sys.stderr)
print(rate if mesh.startswith("alone") else one)
EOF
    )
  done
  rm -rf "$out"/run* "$out/data"
  unset TOKAMAK_CACHE NCCL_NVLS_ENABLE
}

# A run on the data of $out/data. Arguments: device, batch, options with commas between them, folder.
train_on() {
  # shellcheck disable=SC2086
  timeout -k 5 "${LIMIT:-60}" "$bin/tokamak" train --device="$1" $model --data.path="$out/data" --train.batch="$2" ${3//,/ } \
    --train.steps="${STEPS:-60}" --train.eval_every=0 --train.checkpoint_every=0 --train.sample_every=0 \
    --train.out="$4" ${MORE:-} > "$4.log" 2>&1 || { echo "$3: exit status $?"; tail -3 "$4.log"; }
}

nccl() {
  NCCL_NVLS_ENABLE=0 timeout 200 "$bin/gpu_nccl_test" > "$out/gpu_nccl_test.log" 2>&1
  echo "gpu_nccl_test: exit status $?, $(grep -c '^\[       OK' "$out/gpu_nccl_test.log") passed," \
    "$(grep -cE '^\[  SKIPPED \].*\([0-9]+ ms\)' "$out/gpu_nccl_test.log") skipped"
}

# What all GPUs exchange, alone and beside matrix products, by the mailbox and by NCCL.
exchange() {
  local port by rank
  for by in mailbox nccl; do
    port=$((20000 + RANDOM % 10000))
    for ((rank = gpus - 1; rank >= 0; --rank)); do
      RANK=$rank WORLD_SIZE=$gpus LOCAL_RANK=$rank MASTER_ADDR=127.0.0.1 MASTER_PORT=$port NCCL_NVLS_ENABLE=0 \
        timeout -k 5 "${LIMIT:-120}" "$bin/bench_gpu_ranks" $by &
    done
    wait
  done 2>&1 | tee "$out/exchange.txt"
}

# The ladder on all GPUs: every way to divide the run, with ordered sums and with plain ones.
meshes() {
  export NCCL_NVLS_ENABLE=0
  for slots in 0 1; do
    timeout -k 5 "${LIMIT:-300}" "$bin/tokamak" ladder --device=cuda $model --mesh.data="$gpus" --mesh.slots=$slots \
      --train.batch=$((${BATCH:-64} * gpus)) --top --steps="${STEPS:-20}" --out="$out/meshes-slots$slots" 2>&1
  done
  unset NCCL_NVLS_ENABLE
}

# A command as so many ranks, which the program starts itself where each has a GPU.
on_ranks() {
  [ "$1" -le "$gpus" ] && { "${@:2}"; return; }
  each_rank "$@"
}

# A command as each of so many ranks. Where they share GPUs, each is alone on its machine for NCCL, which then goes through
# sockets: as right, and slow.
each_rank() {
  local world=$1 port=$((20000 + RANDOM % 10000)) rank status
  shift
  for ((rank = world - 1; rank >= 0; --rank)); do
    [ "$world" -gt "$gpus" ] && export NCCL_HOSTID=$rank NCCL_SOCKET_IFNAME=lo
    RANK=$rank WORLD_SIZE=$world LOCAL_RANK=$((rank % gpus)) MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$@" &
  done
  unset NCCL_HOSTID NCCL_SOCKET_IFNAME
  wait $!  # rank 0
  status=$?
  wait
  return $status
}

# Whether losses and parameters of one rank are those of all, bit by bit, with the stages of ZeRO and in pipelines; and
# whether a text and a validation of all ranks together are one's. MESHES: which, each with as many ranks, or with one.
bits() {
  export TOKAMAK_CACHE=$out/cache NCCL_NVLS_ENABLE=0
  "$bin/tokamak" prepare "${DATA:-../shared/data}/wikitext-2/train.txt" --vocab="${DATA:-../shared/data}/gpt2" \
    --out="$out/data" > "$out/prepare.log" 2>&1 || { tail -3 "$out/prepare.log"; return; }
  default="--mesh.data=1,--mesh.slots=$ranks --mesh.data=$ranks --mesh.data=$ranks,--mesh.zero=1
    --mesh.data=$ranks,--mesh.zero=2 --mesh.pipe=$ranks,--mesh.slots=$ranks
    --mesh.pipe=$ranks,--mesh.schedule=zero_bubble,--mesh.slots=$ranks --mesh.data=$ranks,--mesh.zero=3"
  for mesh in ${MESHES:-$default}; do
    case $mesh in --mesh.data=1,*) world=1 ;; *) world=$ranks ;; esac
    rm -rf "$out/run"
    # shellcheck disable=SC2086
    on_ranks "$world" timeout -k 5 "${LIMIT:-120}" "$bin/tokamak" train --device=cuda $model --data.path="$out/data" \
      ${mesh//,/ } --train.batch=$((${BATCH:-16} * ranks)) --train.steps="${STEPS:-50}" --train.eval_every=25 \
      --train.sample_every=0 --train.out="$out/run" ${MORE:-} > "$out/bits.log" 2>&1 ||
      { echo "$mesh: exit status $?"; tail -3 "$out/bits.log"; continue; }
    losses=$(python3 -c '
import hashlib, json, sys
losses = [(s["loss"], s.get("val_loss")) for s in map(json.loads, open(sys.argv[1]))]
print(hashlib.sha256(str(losses).encode()).hexdigest()[:16], "to", losses[-1][0])' "$out/run/metrics.jsonl")
    echo "$mesh: losses $losses, parameters $(sha256sum < "$out/run/checkpoints/latest/model.safetensors" | cut -c1-16)"
  done
  for world in 1 "$ranks"; do
    mesh=--mesh.tensor=$world
    on_ranks "$world" timeout -k 5 "${LIMIT:-120}" "$bin/tokamak" generate "$out/run" --device=cuda "$mesh" \
      --prompt="The game" --tokens=48 --temperature=0 > "$out/text$mesh.txt" 2> "$out/generate.log" ||
      { echo "generate $mesh: exit status $?"; tail -3 "$out/generate.log"; }
    echo "generate $mesh: $(sha256sum < "$out/text$mesh.txt" | cut -c1-16) $(head -c 90 "$out/text$mesh.txt" | tr '\n' ' ')"
    on_ranks "$world" timeout -k 5 "${LIMIT:-120}" "$bin/tokamak" eval "$out/run" --device=cuda "$mesh" 2>&1 | tail -1
  done
  rm -rf "$out/run" "$out/data"
  unset TOKAMAK_CACHE NCCL_NVLS_ENABLE
}

# Models that need several GPUs, or a sequence that does, each on one mesh: measured beside what was predicted. LARGE: which.
large() {
  export NCCL_NVLS_ENABLE=0
  for case in ${LARGE:-zero3 long context tensor pipe 6.7b}; do
    case $case in
      zero3) options="--model.preset=gpt2-1558m --train.batch=$((32 * gpus)) --mesh.data=$gpus --mesh.zero=3" ;;
      long) options="$model --model.context=131072 --train.batch=$gpus --mesh.context=$gpus --warmup=1 --steps=2" ;;
      context) options="--model.preset=gpt2-1558m --train.batch=$((16 * gpus)) --mesh.context=$gpus" ;;
      tensor) # 25 heads cannot be divided
        options="--model.preset=gpt2-1558m --model.heads=20 --train.batch=$((32 * gpus)) --mesh.tensor=$gpus" ;;
      pipe) options="--model.preset=gpt2-1558m --train.batch=$((32 * gpus)) --mesh.pipe=$gpus" ;;
      6.7b) options="--model.preset=gpt3-6.7b --train.batch=$((16 * gpus)) --mesh.data=$gpus --mesh.zero=3
        --mesh.bucket_mib=160 --compile.memory_budget_gib=80" ;;
      *) echo "no case '$case'" && continue ;;
    esac
    # shellcheck disable=SC2086
    timeout -k 5 "${LIMIT:-120}" "$bin/tokamak" ladder --device=cuda --steps="${STEPS:-8}" $options --mesh.slots=1 --own \
      --out="$out/large-$case" 2>&1 || echo "$case: exit status $?"
  done
  unset NCCL_NVLS_ENABLE
}

# Two steps of a tiny model on each mesh, each rank under a memcheck of its own. MESHES: which.
sanitize_ranks() {
  export NCCL_NVLS_ENABLE=0
  default="--mesh.data=$ranks --mesh.data=$ranks,--mesh.zero=3 --mesh.tensor=$ranks --mesh.context=$ranks
    --mesh.pipe=$ranks,--train.total_batch=$((4096 * ranks))"
  for mesh in ${MESHES:-$default}; do
    mesh=${mesh//,/ }
    # NCCL asks the driver for kernels that it may not have.
    # shellcheck disable=SC2086
    each_rank "$ranks" timeout -k 5 "${LIMIT:-120}" compute-sanitizer --tool memcheck --report-api-errors no --target-processes all \
      --kernel-name-exclude kernel_substring=cudnn --error-exitcode 9 "$bin/tokamak" ladder --device=cuda --model.layers=2 \
      --model.heads=4 --model.width=256 --model.context=1024 --model.vocab=512 --compile.precision=bf16 \
      --train.batch=$((2 * ranks)) $mesh --own --steps=1 --warmup=1 > "$out/memcheck-ranks.log" 2>&1
    echo "memcheck of $mesh: exit status $?, $(grep -c 'ERROR SUMMARY: 0 errors' "$out/memcheck-ranks.log") ranks without errors"
    grep -E 'ERROR SUMMARY: [1-9]|error:' "$out/memcheck-ranks.log" | sort | uniq -c | head -3
  done
  unset NCCL_NVLS_ENABLE
}

# PyTorch on one GPU and on all: NCCL's bandwidth, DDP of GPT-2 124M and FSDP2 of 1558M, as ranks and
# large measure them. XL_BATCH: sequences of 1558M a GPU.
rank_peers() {
  export NCCL_NVLS_ENABLE=0
  for run in "$gpus nccl" "1 ddp ${BATCH:-64}" "$gpus ddp ${BATCH:-64}" "$gpus fsdp ${XL_BATCH:-32}"; do
    # shellcheck disable=SC2086
    timeout -k 5 "${LIMIT:-180}" torchrun --standalone --nproc_per_node ${run%% *} "${PEERS:-../shared/peers}/torch_ddp.py" \
      ${run#* } 2> "$out/torch-ranks.log" || { echo "$run: exit status $?"; tail -3 "$out/torch-ranks.log"; }
  done
  unset NCCL_NVLS_ENABLE
}

# Kills a rank of a run, mesh by mesh. ROWS: those that contain this.
faults() { python3 bench/faults.py "$bin/tokamak" "$out/faults" --only="${ROWS:-}" 2>&1; }

# PyTorch and Tokamak, in turn, at shapes off the beaten path.
shapes() { python3 bench/torch_shapes.py --tokamak "$bin/tokamak" 2>&1 | tee "$out/torch-shapes.txt"; }

nvidia-smi --query-gpu=name,driver_version,clocks.sm,temperature.gpu --format=csv,noheader
for part in $parts; do
  echo "== $part"
  case $part in
    test) run_tests ;;
    sanitize | ladder | steps | profile | xl | start | generate | peers | shapes) $part ;;
    nccl | exchange | ranks | meshes | bits | large | sanitize_ranks | rank_peers | faults) $part ;;
    *) echo "no part '$part'" ;;
  esac
done
rm -rf "$out/cache"
