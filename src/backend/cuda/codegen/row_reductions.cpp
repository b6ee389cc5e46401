// Of RowWriter: the ends of reductions.
#include "backend/cuda/codegen/combine.h"
#include "backend/cuda/codegen/row_writer.h"
#include "graph/op_def.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

namespace tokamak::cuda {

// The reductions of phase p that the threads of a row complete together.
std::vector<int> RowWriter::combined(int p) const {
  std::vector<int> found = phases_.reductions(p);
  std::erase_if(found, [&](int v) { return expression_.level(value(v).operands[0]) != Level::kTile || is_pick(v); });
  return found;
}

void RowWriter::finish_reductions(int p) {
  for (int v : phases_.reductions(p)) {
    int operand = value(v).operands[0];
    if (expression_.level(operand) == Level::kTile) continue;  // else it is the same in every column
    text_.line("const float v{} = {}{};  // {}", v, expression_.name(operand),
               value(v).is(op::reduce_sum) ? " * float(kCols)" : "", value(v).op->name);
  }
  write_combine(p);
  bool waited = plan_.team > 32 && !combined(p).empty();
  for (int v : phases_.reductions(p)) {
    if (!is_pick(v)) continue;
    const RowShortcuts::Pick& pick = shortcuts_.picks.at(v);
    if (!waited) text_.line("__syncthreads();");  // other threads have staged it
    waited = true;
    text_.line("const float v{} = pick(x{}, int(kCols), {});  // {}", v, pick.argument, expression_.name(pick.place),
               value(v).op->name);
  }
}

void RowWriter::write_combine(int p) {
  std::vector<int> reductions = combined(p);
  if (reductions.empty()) return;
  std::string own, how;
  for (int v : reductions) {
    const char* name = combine_name(value(v));
    bool packed = shortcuts_.packed_max.count(v) > 0;
    if (packed) text_.line("part{0}[0] = Max::combine(part{0}[0], top{0}.value());", v);
    own += fmt::format("{}combine_own<{}, kParts>(part{})", own.empty() ? "" : ", ", name, v);
    how += fmt::format(", {}", name);
  }
  text_.line("float all{}[] = {{{}}};", p, own);
  std::string scratch = "nullptr";
  if (needs_scratch())
    scratch =
        fmt::format("scratch[team][{}] + {} * (kTeam / 32)", takes_turns() ? "turn" : "0", scratch_of_[size_t(p)]);
  // A function's teams are not all threads of the block, be it one team.
  text_.line("combine_team<kTeam, {}{}>(all{}, {}, team);", function_ ? "2" : "kTeams", how, p, scratch);
  for (size_t i = 0; i < reductions.size(); ++i)
    text_.line("const float v{} = all{}[{}];  // {}", reductions[i], p, i, value(reductions[i]).op->name);
}

// What takes the value of reduction v's operand in, too; a product without rounding it first.
std::string RowWriter::combined_with(int v, const std::string& total) const {
  int operand = value(v).operands[0];
  bool sum = value(v).is(op::reduce_sum);
  if (sum && value(operand).is(op::mul) && value(operand).dtype == DType::kF32)
    return fmt::format("fmaf({}, {}, {})", expression_.name(value(operand).operands[0]),
                       expression_.name(value(operand).operands[1]), total);
  return fmt::format("{}::combine({}, {})", combine_name(value(v)), total, expression_.name(operand));
}

}  // namespace tokamak::cuda
