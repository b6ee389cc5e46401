// A group's body compiled to instructions over cache-sized tiles: a tile is `chunk` elements of one row, intermediates
// live in registers (rows of scratch memory that stay in L1/L2) and never reach main memory. Reductions cut a row's
// work into phases: phase p may use the reductions finished before it. A row longer than a chunk recomputes in each
// phase what that phase needs; a row of one chunk keeps its registers. Run by group_kernel.cpp.
#pragma once

#include "backend/cpu/chain.h"
#include "backend/cpu/iteration.h"
#include "ops/group_body.h"

namespace tokamak::cpu {

struct Operand {
  enum class Kind : uint8_t {
    kRegister,  // chunk floats of scratch
    kRow,       // a float per row, in the row scratch
    kConstant,  // a float of the program
    kAccess,    // fp32 memory of an argument, through an access
    kRaw,       // an argument's storage as it is
  };
  Kind kind = Kind::kRegister;
  int index = 0;
};

struct Instruction {
  enum class Kind : uint8_t {
    kCompute,  // output = op(inputs), or what `chain` makes of them
    kLoad,     // output = access `access`, converted to fp32
    kReduce,   // row value `output` combines inputs[0], or the products of inputs[0] and inputs[1]
    kStore,    // result `result` = inputs[0]
  };
  Kind kind = Kind::kCompute;
  Node node = {};             // kCompute, kReduce: op and attributes
  ChainLoop chain = nullptr;  // kCompute: `node` and the one that makes its operand, in one loop
  std::vector<Operand> inputs;
  Operand output;
  int access = -1;  // kLoad, and generators: where the index of the first element comes from
  int result = -1;  // kStore; kCompute: the result that it may write directly, or -1
};

struct Phase {
  std::vector<Instruction> row;   // once a row, on row values
  std::vector<Instruction> tile;  // for every chunk of the row
};

/// Where a result goes.
struct ResultInfo {
  DType dtype = DType::kF32;
  int64_t bytes = 0;
  bool per_row = false;  // one element a row
  bool column = false;   // column reductions: accumulated over rows
  bool maximum = false;  // column reductions: by maximum instead of sum
};

struct TileProgram {
  Iteration iteration;
  std::vector<int64_t> argument_bytes;
  std::vector<int> access_argument;  // by access: argument index, or -1 for the index of a generator
  std::vector<DType> access_dtype;
  std::vector<float> constants;
  std::vector<Phase> phases;
  std::vector<ResultInfo> results;
  /// by result, by argument: an instruction reads the argument after the result's first element was written
  std::vector<std::vector<bool>> read_after_write;
  int num_registers = 0;
  int num_row_values = 0;
  int64_t chunk = 0;
};

/// `outer` of inputs and results are positions among arguments and results.
TileProgram compile_tiles(const GroupBody& group);

}  // namespace tokamak::cpu
