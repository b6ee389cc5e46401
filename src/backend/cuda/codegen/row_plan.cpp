#include "backend/cuda/codegen/row_plan.h"

#include "backend/cuda/codegen/expression.h"
#include "base/error.h"

#include <algorithm>

namespace tokamak::cuda {
namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kMaxElements = 32;      // of a row in the registers of one thread
constexpr int64_t kMaxOperandWords = 72;  // registers of a thread that hold operands
constexpr int64_t kMaxTeam = 512;         // threads of a row that keep operands in registers
constexpr int64_t kBlockThreads = 256;    // of a block with several rows
// Of a group with sums over rows: what the largest GPUs run at a time. Each thread then has few columns, whose sums
// stay in registers, and enough rows are under way to hide the memory's latency.
constexpr int64_t kSumThreads = 132 * RowPlan::kSumThreadsEach;
constexpr int64_t kTwoBlocks = 112 << 10;  // shared memory with which two blocks fit on a multiprocessor

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Threads of a row, a multiple of a warp, that leave each at most `elements`.
int64_t team_for(int64_t vectors, int64_t vector, int64_t elements) {
  int64_t each = std::max<int64_t>(elements / vector, 1);
  return ceil_div(ceil_div(vectors, each), kWarp) * kWarp;
}

}  // namespace

bool is_row_operand(const GroupBody& body, const BodyValue& value) {
  return value.is_argument() && value.along_cols && (value.along_rows || body.rows == 1);
}

int64_t staged_bytes(const GroupBody& body, const BodyValue& argument) {
  return ceil_div(body.cols * dtype_bytes(argument.dtype), 16) * 16;
}

RowPlan plan_rows(const GroupBody& body, int64_t unmasked, bool sums_rows, int64_t shared_bytes) {
  RowPlan plan;
  plan.vector = vector_length(body.cols, 16 / body.narrowest_bytes());
  int64_t vectors = body.cols / plan.vector, bytes = 0, staged = 0;
  for (const BodyValue& v : body.values)
    if (is_row_operand(body, v)) {
      bytes += dtype_bytes(v.dtype);
      staged += staged_bytes(body, v);
    }
  int64_t elements = kMaxElements;
  while (elements > 8 && elements * bytes / 4 > kMaxOperandWords) elements /= 2;
  if (sums_rows) elements = std::max<int64_t>(plan.vector, ceil_div(body.cols, 1024));
  int64_t team = team_for(vectors, plan.vector, elements);
  if (team > kMaxTeam && !sums_rows) {
    plan.keep = staged <= shared_bytes && staged > 0 ? RowPlan::Keep::kShared : RowPlan::Keep::kNothing;
    team = staged <= kTwoBlocks ? kMaxTeam : 1024;
    if (plan.keep == RowPlan::Keep::kShared) plan.shared_bytes = int(staged);
  }
  TOKAMAK_CHECK(team <= 1024, "[group] a row group with sums over its rows has {} columns", body.cols);
  plan.team = int(team);
  plan.vectors = int(ceil_div(vectors, team));
  plan.whole = std::min(unmasked, body.cols) / (team * plan.vector);
  plan.teams = team == kWarp ? int(std::min(kBlockThreads / kWarp, body.rows)) : 1;
  plan.blocks = ceil_div(body.rows, plan.teams);
  if (sums_rows) plan.blocks = std::min(plan.blocks, std::max<int64_t>(kSumThreads / plan.block_threads(), 1));
  return plan;
}

}  // namespace tokamak::cuda
