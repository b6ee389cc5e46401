#include "backend/cuda/codegen/row_plan.h"

#include "backend/cuda/codegen/expression.h"
#include "base/divide.h"
#include "base/error.h"
#include "ops/generate.h"

#include <algorithm>

namespace tokamak::cuda {
namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kMaxElements = 32;      // of a row in the registers of one thread
constexpr int64_t kMaxOperandWords = 72;  // registers of a thread that hold operands
constexpr int64_t kMaxTeam = 512;         // threads of a row that keep operands in registers
constexpr int64_t kBlockThreads = 256;    // of a block with several rows
// Of a group with sums over rows: what the largest GPUs run at a time. Each thread then has few columns, whose sums
// stay in registers, and enough rows are under way to hide the memory's latency. A block's rows leave one partial
// result, so blocks are large; what its rows leave lies in shared memory for a moment.
constexpr int64_t kMultiprocessors = 132, kSumThreads = 768, kSumSharedBytes = 32 << 10;
// The same where random numbers are drawn, which take registers: else those of a row that is loaded ahead are spilled,
// and so waited for (measured: 3.2 times slower).
constexpr int64_t kRandomSumThreads = 576;
constexpr int64_t kRegisters = 1 << 16;    // of a multiprocessor
constexpr int64_t kWorkingRegisters = 30;  // of a thread, next to operands and sums
constexpr int64_t kTwoBlocks = 112 << 10;  // shared memory with which two blocks fit on a multiprocessor

// Threads of a row, a multiple of a warp, that leave each `elements`, rounded up to whole vectors.
int64_t team_for(int64_t vectors, int64_t vector, int64_t elements) {
  return round_up(ceil_div(vectors, ceil_div(elements, vector)), kWarp);
}

// Of a multiprocessor, for which a group with sums over rows is made.
int64_t sum_threads(const GroupBody& body) {
  bool random =
      std::any_of(body.values.begin(), body.values.end(), [](const GroupValue& v) { return v.is(op::random_uniform); });
  return random ? kRandomSumThreads : kSumThreads;
}

// Rows of a block at a time.
int64_t teams_for(const GroupBody& body, int64_t team, bool sums_rows) {
  int64_t teams = team == kWarp ? kBlockThreads / kWarp : 1;
  if (sums_rows) teams = std::min(kSumSharedBytes / (4 * body.cols), sum_threads(body) / team);
  return std::max<int64_t>(std::min(teams, body.rows), 1);
}

// Registers of a thread that hold two rows' operands, the sums and, where `columns`, the columns' arguments.
int64_t held_registers(const GroupBody& body, const RowPlan& plan, bool columns) {
  int64_t bytes = 0;
  for (const GroupValue& v : body.values) {
    if (is_row_operand(body, v))
      bytes += 2 * dtype_bytes(v.dtype);
    else if (columns && v.is_input() && v.along_cols)
      bytes += dtype_bytes(v.dtype);
    if (v.reduces_rows()) bytes += 4;
  }
  return ceil_div(bytes * plan.vectors * plan.vector, 4);
}

// Of a thread of a group with sums over rows.
int64_t registers_of_thread(const RowPlan& plan) {
  return kRegisters / (plan.at_a_time * plan.block_threads()) / 8 * 8;
}

}  // namespace

bool is_row_operand(const GroupBody& body, const GroupValue& value) {
  return value.is_input() && value.along_cols && (value.along_rows || body.rows == 1);
}

int64_t staged_bytes(const GroupBody& body, const GroupValue& argument) {
  return ceil_div(body.cols * dtype_bytes(argument.dtype), 16) * 16;
}

RowPlan plan_rows(const GroupBody& body, int64_t unmasked, bool sums_rows, int64_t shared_bytes) {
  RowPlan plan;
  plan.vector = vector_length(body.cols, 16 / narrowest_bytes(body));
  int64_t vectors = body.cols / plan.vector, bytes = 0, staged = 0;
  for (const GroupValue& v : body.values)
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
  plan.teams = int(teams_for(body, team, sums_rows));
  plan.blocks = ceil_div(body.rows, plan.teams);
  if (!sums_rows) return plan;
  plan.at_a_time = int(std::max<int64_t>(sum_threads(body) / plan.block_threads(), 1));
  plan.blocks = std::min(plan.blocks, kMultiprocessors * plan.at_a_time);  // all run at a time
  int64_t free = registers_of_thread(plan) - kWorkingRegisters;
  plan.ahead = held_registers(body, plan, false) <= free;
  plan.columns = plan.ahead && held_registers(body, plan, true) <= free;
  return plan;
}

RowPlan plan_rows_of_block(const GroupBody& body, int64_t unmasked, int64_t threads) {
  constexpr int64_t kBarriers = 15;  // of a block, beside that of all its threads
  RowPlan plan;
  plan.vector = vector_length(body.cols, 16 / narrowest_bytes(body));
  int64_t vectors = body.cols / plan.vector, team = std::min(round_up(vectors, kWarp), threads);
  plan.team = int(team);
  plan.vectors = int(ceil_div(vectors, team));
  plan.whole = std::min(unmasked, body.cols) / (team * plan.vector);
  plan.teams = int(std::min({threads / team, kBarriers, body.rows}));
  return plan;
}

}  // namespace tokamak::cuda
