#include "backend/cpu/merge_loops.h"

#include "ops/pointwise.h"
#include "ops/reduce.h"

#include <map>

namespace tokamak::cpu {
namespace {

using Kind = Instruction::Kind;

bool is_register(const Operand& o) { return o.kind == Operand::Kind::kRegister; }

class Merger {
 public:
  explicit Merger(TileProgram& program) : program_(program) {
    for (const Phase& phase : program.phases)
      for (const Instruction& i : phase.tile)
        for (const Operand& o : i.inputs)
          if (is_register(o)) ++uses_[o.index];
  }

  void run(std::vector<Instruction>& tile) {
    for (size_t j = 0; j < tile.size(); ++j) {
      if (tile[j].kind == Kind::kReduce) merge_dot(tile, j);
      if (tile[j].kind == Kind::kCompute) merge_chain(tile, j);
    }
    std::erase_if(tile, [](const Instruction& i) { return i.kind == Kind::kCompute && !i.node.op; });
  }

 private:
  // The unmerged two-operand instruction before j that makes a register which only one operand reads; else null.
  Instruction* sole_maker(std::vector<Instruction>& tile, size_t j, const Operand& operand) {
    if (!is_register(operand) || uses_.at(operand.index) != 1) return nullptr;
    for (size_t i = 0; i < j; ++i) {
      Instruction& maker = tile[i];
      if (maker.kind == Kind::kCompute && maker.node.op && !maker.chain && maker.inputs.size() == 2 &&
          is_register(maker.output) && maker.output.index == operand.index)
        return &maker;
    }
    return nullptr;
  }

  // reduce_sum(mul(a, b)) along a row, of operands that both vary along it.
  void merge_dot(std::vector<Instruction>& tile, size_t j) {
    Instruction& sum = tile[j];
    if (sum.node.op != &op::reduce_sum || sum.result >= 0) return;
    Instruction* product = sole_maker(tile, j, sum.inputs[0]);
    if (!product || product->node.op != &op::mul || !varies(product->inputs[0]) || !varies(product->inputs[1])) return;
    sum.inputs = product->inputs;
    product->node.op = nullptr;
  }

  void merge_chain(std::vector<Instruction>& tile, size_t j) {
    Instruction& second = tile[j];
    if (!second.node.op || second.chain || second.inputs.size() != 2) return;
    for (int position : {0, 1}) {
      Instruction* first = sole_maker(tile, j, second.inputs[size_t(position)]);
      if (!first) continue;
      ChainLoop chain = find_chain(*first->node.op, *second.node.op, position);
      if (!chain) continue;
      Operand other = second.inputs[size_t(1 - position)];
      second.chain = chain;
      second.inputs = {first->inputs[0], first->inputs[1], other};
      first->node.op = nullptr;
      return;
    }
  }

  bool varies(const Operand& o) const {
    if (o.kind == Operand::Kind::kAccess) return !program_.iteration.accesses[size_t(o.index)].uniform;
    return is_register(o);
  }

  TileProgram& program_;
  std::map<int, int> uses_;
};

}  // namespace

void merge_loops(TileProgram& program) {
  Merger merger(program);
  for (Phase& phase : program.phases) merger.run(phase.tile);
}

}  // namespace tokamak::cpu
