#include "backend/cpu/group_kernel.h"

#include "backend/cpu/convert.h"
#include "backend/cpu/reduce.h"
#include "base/parallel.h"
#include "graph/op_def.h"
#include "ops/group.h"
#include "ops/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>

namespace tokamak::cpu {
namespace {

using Inputs = std::span<const void* const>;
using Outputs = std::span<void* const>;

constexpr size_t kMaxOperands = 3;

struct AlignedFree {
  void operator()(float* p) const { ::operator delete[](p, std::align_val_t(64)); }
};
using Scratch = std::unique_ptr<float[], AlignedFree>;

Scratch make_scratch(int64_t floats) {
  return Scratch(static_cast<float*>(::operator new[](size_t(std::max<int64_t>(floats, 1)) * 4, std::align_val_t(64))));
}

bool overlap(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
  auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return x < y + uintptr_t(b_bytes) && y < x + uintptr_t(a_bytes);
}

// One thread's state while it runs tiles of one program.
class Runner {
 public:
  Runner(const TileProgram& program, Inputs inputs, Outputs outputs)
      : p_(program), in_(inputs), out_(outputs), cursor_(program.iteration),
        scratch_(make_scratch(int64_t(program.num_registers) * program.chunk)), rows_(size_t(program.num_row_values)),
        sums_(size_t(program.num_row_values)), registers_(size_t(program.num_registers)) {
    for (size_t k = 0; k < registers_.size(); ++k) registers_[k] = own_register(k);
    for (size_t r = 0; r < p_.results.size(); ++r) direct_.push_back(may_write_directly(r));
  }

  void seek(int64_t position) { cursor_.seek(position); }
  void next() { cursor_.next(); }

  // All phases of the row at the cursor.
  void run_row() {
    for (const Phase& phase : p_.phases) {
      begin_phase(phase);
      for (int64_t c = 0; c < p_.iteration.inner; c += p_.chunk)
        run_chunk(phase, c, std::min(p_.chunk, p_.iteration.inner - c), {});
      end_phase(phase);
    }
  }

  // A single chunk of a program with one phase. Column reductions go to `sums`, by result.
  void run_chunk_at(int64_t c, std::span<float* const> sums) {
    begin_phase(p_.phases[0]);
    run_chunk(p_.phases[0], c, std::min(p_.chunk, p_.iteration.inner - c), sums);
  }

 private:
  float* own_register(size_t k) { return scratch_.get() + int64_t(k) * p_.chunk; }

  bool may_write_directly(size_t r) const {
    for (size_t a = 0; a < in_.size(); ++a)
      if (p_.read_after_write[r][a] && overlap(out_[r], p_.results[r].bytes, in_[a], p_.argument_bytes[a]))
        return false;
    return true;
  }

  void begin_phase(const Phase& phase) {
    for (const Instruction& i : phase.row) run_on_row(i);
    for (const Instruction& i : phase.tile)
      if (i.kind == Instruction::Kind::kReduce && i.result < 0) {
        rows_[size_t(i.output.index)] = -HUGE_VALF;
        sums_[size_t(i.output.index)] = RowSum();
      }
  }

  void end_phase(const Phase& phase) {
    for (const Instruction& i : phase.tile)
      if (i.kind == Instruction::Kind::kReduce && i.node.op == &op::reduce_sum && !operand(i.inputs[0], 0).uniform)
        rows_[size_t(i.output.index)] = sums_[size_t(i.output.index)].total();
  }

  const void* argument(int access) const { return in_[size_t(p_.access_argument[size_t(access)])]; }

  TileOperand operand(const Operand& o, int64_t c) {
    switch (o.kind) {
      case Operand::Kind::kRegister: return {registers_[size_t(o.index)], false, nullptr};
      case Operand::Kind::kRow: return {&rows_[size_t(o.index)], true, nullptr};
      case Operand::Kind::kConstant: return {&p_.constants[size_t(o.index)], true, nullptr};
      case Operand::Kind::kRaw: return {nullptr, true, in_[size_t(o.index)]};
      case Operand::Kind::kAccess: {
        bool uniform = p_.iteration.accesses[size_t(o.index)].uniform;
        int64_t at = cursor_.offset(size_t(o.index)) + (uniform ? 0 : c);
        return {static_cast<const float*>(argument(o.index)) + at, uniform, nullptr};
      }
    }
    return {};
  }

  void compute(const Instruction& i, int64_t c, int64_t n, float* out) {
    std::array<TileOperand, kMaxOperands> operands;
    for (size_t k = 0; k < i.inputs.size(); ++k) operands[k] = operand(i.inputs[k], c);
    if (i.chain) return i.chain({operands.data(), i.inputs.size()}, n, out);
    int64_t first = 0;
    if (i.access >= 0)
      first = cursor_.offset(size_t(i.access)) + (p_.iteration.accesses[size_t(i.access)].uniform ? 0 : c);
    i.node.op->tile(i.node, {operands.data(), i.inputs.size()}, first, n, out);
  }

  void run_on_row(const Instruction& i) {
    switch (i.kind) {
      case Instruction::Kind::kCompute: return compute(i, 0, 1, &rows_[size_t(i.output.index)]);
      case Instruction::Kind::kLoad:
        return load(p_.access_dtype[size_t(i.access)], argument(i.access), cursor_.offset(size_t(i.access)), 1,
                    &rows_[size_t(i.output.index)]);
      case Instruction::Kind::kStore:
        return store(p_.results[size_t(i.result)].dtype, operand(i.inputs[0], 0).data, 1, out_[size_t(i.result)],
                     cursor_.position());
      case Instruction::Kind::kReduce: return;
    }
  }

  void run_chunk(const Phase& phase, int64_t c, int64_t n, std::span<float* const> sums) {
    for (const Instruction& i : phase.tile) {
      switch (i.kind) {
        case Instruction::Kind::kCompute: run_compute(i, c, n); break;
        case Instruction::Kind::kLoad: run_load(i, c, n); break;
        case Instruction::Kind::kReduce: run_reduce(i, c, n, sums); break;
        case Instruction::Kind::kStore: run_store(i, c, n); break;
      }
    }
  }

  void run_compute(const Instruction& i, int64_t c, int64_t n) {
    auto k = size_t(i.output.index);
    float* out = own_register(k);
    if (i.result >= 0 && direct_[size_t(i.result)]) out = result_at(i.result, c);
    compute(i, c, n, out);
    registers_[k] = out;
  }

  float* result_at(int r, int64_t c) const {
    return static_cast<float*>(out_[size_t(r)]) + cursor_.position() * p_.iteration.inner + c;
  }

  void run_load(const Instruction& i, int64_t c, int64_t n) {
    auto k = size_t(i.output.index);
    registers_[k] = own_register(k);
    load(p_.access_dtype[size_t(i.access)], argument(i.access), cursor_.offset(size_t(i.access)) + c, n, registers_[k]);
  }

  void run_reduce(const Instruction& i, int64_t c, int64_t n, std::span<float* const> sums) {
    TileOperand x = operand(i.inputs[0], c);
    bool largest = i.node.op == &op::reduce_max;
    if (i.result >= 0) {  // column
      if (x.uniform) std::fill_n(own_spare(n), n, *x.data), x.data = spare_.get();
      return largest ? max_to(x.data, n, sums[size_t(i.result)]) : add_to(x.data, n, sums[size_t(i.result)]);
    }
    if (x.uniform) {
      rows_[size_t(i.output.index)] = *x.data * (largest ? 1.0f : float(p_.iteration.inner));
      return;
    }
    auto row = size_t(i.output.index);
    if (largest)
      rows_[row] = std::max(rows_[row], maximum(x.data, n));
    else if (i.inputs.size() == 2)
      sums_[row].add_products(x.data, operand(i.inputs[1], c).data, n);
    else
      sums_[row].add(x.data, n);
  }

  float* own_spare(int64_t n) {
    if (!spare_) spare_ = make_scratch(std::max(n, p_.chunk));
    return spare_.get();
  }

  void run_store(const Instruction& i, int64_t c, int64_t n) {
    TileOperand x = operand(i.inputs[0], c);
    const ResultInfo& result = p_.results[size_t(i.result)];
    if (x.uniform) std::fill_n(own_spare(n), n, *x.data), x.data = spare_.get();
    if (result.dtype == DType::kF32 && x.data == result_at(i.result, c)) return;
    store(result.dtype, x.data, n, out_[size_t(i.result)], cursor_.position() * p_.iteration.inner + c);
  }

  const TileProgram& p_;
  Inputs in_;
  Outputs out_;
  Cursor cursor_;
  Scratch scratch_, spare_;
  std::vector<float> rows_;
  std::vector<RowSum> sums_;  // by row value: of the reductions that are being made
  std::vector<float*> registers_;
  std::vector<bool> direct_;
};

bool has_rows(const TileProgram& p) { return p.phases.size() > 1 || p.iteration.row_dims > 0; }

int64_t chunks_per_row(const TileProgram& p) { return (p.iteration.inner + p.chunk - 1) / p.chunk; }

class TileKernel : public Kernel {
 public:
  explicit TileKernel(TileProgram program) : program_(std::move(program)) {}

  void run(Inputs inputs, Outputs outputs) override {
    parallel_for(num_tiles(program_), 1,
                 [&](int64_t begin, int64_t end, int) { run_tiles(program_, inputs, outputs, begin, end); });
  }

 private:
  TileProgram program_;
};

// Sums over rows. Few columns: blocks of rows, fixed in number, are summed apart and then together. Many: every chunk
// of columns is summed over all rows at once.
class ColumnKernel : public Kernel {
 public:
  explicit ColumnKernel(TileProgram program) : p_(std::move(program)) {
    const auto& outer = p_.iteration.outer;
    for (size_t d = 0; d < outer.size(); ++d) (d < p_.iteration.row_dims ? rows_ : outer_cols_) *= outer[d];
    blocks_ = cols() >= kManyColumns ? 1 : std::clamp<int64_t>(rows_ / kRowsPerBlock, 1, kMaxBlocks);
  }

  void run(Inputs inputs, Outputs outputs) override {
    int64_t width = cols(), results = int64_t(outputs.size());
    Scratch sums = make_scratch(blocks_ * results * width);
    start(sums.get());
    int64_t chunks = outer_cols_ * chunks_per_row(p_);
    parallel_for(blocks_ * chunks, 1, [&](int64_t begin, int64_t end, int) {
      Runner runner(p_, inputs, outputs);
      for (int64_t task = begin; task < end; ++task) run_task(runner, task / chunks, task % chunks, sums.get());
    });
    parallel_for(width, 256, [&](int64_t begin, int64_t end, int) {
      for (int64_t r = 0; r < results; ++r) combine(r, begin, end, sums.get(), outputs[size_t(r)]);
    });
  }

 private:
  static constexpr int64_t kManyColumns = 4096, kRowsPerBlock = 16, kMaxBlocks = 64;

  int64_t cols() const { return outer_cols_ * p_.iteration.inner; }
  float* row_of(float* sums, int64_t block, int64_t r) const {
    return sums + (block * int64_t(p_.results.size()) + r) * cols();
  }

  void start(float* sums) const {
    for (int64_t b = 0; b < blocks_; ++b)
      for (size_t r = 0; r < p_.results.size(); ++r)
        std::fill_n(row_of(sums, b, int64_t(r)), cols(), p_.results[r].maximum ? -HUGE_VALF : 0.0f);
  }

  void run_task(Runner& runner, int64_t block, int64_t chunk, float* sums) const {
    int64_t q = chunk / chunks_per_row(p_), c = chunk % chunks_per_row(p_) * p_.chunk;
    std::vector<float*> targets;
    for (size_t r = 0; r < p_.results.size(); ++r)
      targets.push_back(row_of(sums, block, int64_t(r)) + q * p_.iteration.inner + c);
    int64_t end = rows_ * (block + 1) / blocks_;
    for (int64_t row = rows_ * block / blocks_; row < end; ++row) {
      runner.seek(row * outer_cols_ + q);
      runner.run_chunk_at(c, targets);
    }
  }

  void combine(int64_t r, int64_t begin, int64_t end, float* sums, void* out) const {
    const ResultInfo& result = p_.results[size_t(r)];
    if (!result.column) return;
    float* total = row_of(sums, 0, r) + begin;
    for (int64_t b = 1; b < blocks_; ++b) {
      const float* x = row_of(sums, b, r) + begin;
      result.maximum ? max_to(x, end - begin, total) : add_to(x, end - begin, total);
    }
    store(result.dtype, total, end - begin, out, begin);
  }

  TileProgram p_;
  int64_t rows_ = 1, outer_cols_ = 1, blocks_ = 1;
};

}  // namespace

int64_t num_tiles(const TileProgram& program) {
  return program.iteration.num_outer() * (has_rows(program) ? 1 : chunks_per_row(program));
}

void run_tiles(const TileProgram& program, Inputs inputs, Outputs outputs, int64_t begin, int64_t end) {
  Runner runner(program, inputs, outputs);
  if (has_rows(program)) {
    runner.seek(begin);
    for (int64_t row = begin; row < end; ++row, runner.next()) runner.run_row();
    return;
  }
  int64_t chunks = chunks_per_row(program);
  runner.seek(begin / chunks);
  for (int64_t tile = begin; tile < end; ++tile) {
    if (tile != begin && tile % chunks == 0) runner.next();
    runner.run_chunk_at(tile % chunks * program.chunk, {});
  }
}

std::unique_ptr<Kernel> make_group_kernel(const Graph&, const Node& group) {
  TileProgram program = compile_tiles(read_group(group));
  if (group.op == &op::column) return std::make_unique<ColumnKernel>(std::move(program));
  return std::make_unique<TileKernel>(std::move(program));
}

}  // namespace tokamak::cpu
