// How the threads share the rows of a row group.
#pragma once

#include "ops/group_body.h"

namespace tokamak::cuda {

struct RowPlan {
  /// Where a row's operands are between the phases: in registers, in shared memory, or read again from global memory.
  enum class Keep : uint8_t { kRegisters, kShared, kNothing };
  Keep keep = Keep::kRegisters;
  int vector = 1;        // elements of a thread side by side
  int team = 32;         // threads of a row: a warp, or a block of warps
  int vectors = 1;       // of a thread
  int teams = 1;         // of a block, each with a row of its own
  bool ahead = false;    // a row's operands are loaded while the row before is worked on
  bool columns = false;  // arguments with one element a column stay in registers from row to row
  int64_t blocks = 1;    // of the grid
  int at_a_time = 0;     // of those, on a multiprocessor, for which a group with sums over rows is made
  int64_t whole = 0;     // the first so many vectors of every thread lie below `unmasked` columns
  int shared_bytes = 0;  // dynamic
  int block_threads() const { return team * teams; }
};

/// `unmasked`: columns below which no element is masked. `sums_rows`: the group has sums over the rows, too.
RowPlan plan_rows(const GroupBody& body, int64_t unmasked, bool sums_rows, int64_t shared_bytes);

/// For a part of a kernel whose blocks have `threads`: teams of a block, as large as a row has vectors.
RowPlan plan_rows_of_block(const GroupBody& body, int64_t unmasked, int64_t threads);

/// Bytes in shared memory of a row of the argument, a multiple of 16.
int64_t staged_bytes(const GroupBody& body, const GroupValue& argument);

/// Whether the value is an argument with an element of its own for every element of the matrix.
bool is_row_operand(const GroupBody& body, const GroupValue& value);

}  // namespace tokamak::cuda
