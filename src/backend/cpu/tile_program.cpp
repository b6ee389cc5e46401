#include "backend/cpu/tile_program.h"

#include "backend/cpu/merge_loops.h"
#include "base/error.h"
#include "graph/op_def.h"
#include "ops/generate.h"
#include "ops/group.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

#include <algorithm>
#include <map>
#include <set>

namespace tokamak::cpu {
namespace {

constexpr int64_t kTileBytes = 32 << 10;  // registers of a tile together: most of an L1
constexpr int64_t kMinChunk = 256, kMaxChunk = 2048;

// What a value is while a row is worked on.
enum class Form : uint8_t { kConstant, kRow, kTile };

// Whether it gives what the type of its operands holds.
bool is_exact(const GroupValue& v) {
  for (const OpDef* op : {&op::cast, &op::neg, &op::maximum, &op::minimum, &op::select, &op::less, &op::equal})
    if (v.is(*op)) return true;
  return v.is_input();
}

// What is of 16 bits is rounded where it is computed, as if it had been stored: what a value is must not depend on what
// it is fused with. What nobody reads here is rounded as it is stored.
GroupBody with_rounding(const GroupBody& group) {
  std::vector<bool> is_read(group.values.size(), false);
  for (const GroupValue& value : group.values)
    for (int operand : value.operands) is_read[size_t(operand)] = true;
  GroupBody out{group.kind, group.rows, group.cols, {}, group.results};
  std::vector<int> place;
  for (size_t v = 0; v < group.values.size(); ++v) {
    GroupValue value = group.values[v];
    for (int& operand : value.operands) operand = place[size_t(operand)];
    int made = out.add(value);
    if (is_rounded(value.dtype) && is_read[v] && !is_exact(value)) {
      value.op = &op::cast;
      value.attrs = {{"to", std::string(dtype_name(value.dtype))}};
      value.operands = {made};
      made = out.add(std::move(value));
    }
    place.push_back(made);
  }
  for (GroupResult& result : out.results) result.value = place[size_t(result.value)];
  return out;
}

bool is_generator(const GroupValue& v) { return v.is(op::iota) || v.is(op::random_uniform); }

class Compiler {
 public:
  explicit Compiler(const GroupBody& group) : group_(group), column_(group.kind == &op::column) {}

  TileProgram run() {
    collect_accesses();
    classify();
    int last = *std::max_element(phase_.begin(), phase_.end());
    program_.phases.resize(size_t(last) + 1);
    for (const GroupResult& result : group_.results)
      program_.results.push_back({result.type.dtype, num_bytes(result.type), false, false, false});
    choose_chunk();
    for (int p = 0; p <= last; ++p) emit_phase(p);
    merge_loops(program_);
    allocate_registers();
    find_hazards();
    return std::move(program_);
  }

 private:
  const GroupValue& value(int v) const { return group_.values[size_t(v)]; }
  int count() const { return int(group_.values.size()); }
  Form form(int v) const { return form_[size_t(v)]; }
  int phase(int v) const { return phase_[size_t(v)]; }

  // One access for each input, one for each generator.
  void collect_accesses() {
    std::vector<Shape> shapes;
    program_.argument_bytes.resize(group_.inputs().size());
    for (int v = 0; v < count(); ++v) {
      if (value(v).is_input())
        program_.argument_bytes[size_t(value(v).outer)] = group_.size(value(v)) * dtype_bytes(value(v).dtype);
      if (!value(v).is_input() && !is_generator(value(v))) continue;
      access_of_[v] = int(shapes.size());
      shapes.push_back(group_.shape(value(v)));
      program_.access_argument.push_back(value(v).is_input() ? int(value(v).outer) : -1);
      program_.access_dtype.push_back(value(v).dtype);
    }
    size_t boundary = group_.kind == &op::flat ? 0 : 1;
    program_.iteration = make_iteration({group_.rows, group_.cols}, boundary, shapes);
  }

  void classify() {
    for (int v = 0; v < count(); ++v) {
      form_.push_back(Form::kConstant);
      phase_.push_back(0);
      if (auto access = access_of_.find(v); access != access_of_.end()) {
        bool uniform = program_.iteration.accesses[size_t(access->second)].uniform;
        form_.back() = uniform ? Form::kRow : Form::kTile;
      } else if (value(v).is(op::constant)) {
        constant_of_[v] = int(program_.constants.size());
        program_.constants.push_back(float(value(v).attrs.get_double("value")));
      } else {
        classify_computed(v);
      }
    }
  }

  void classify_computed(int v) {
    Form widest = Form::kRow;
    for (int operand : value(v).operands) {
      if (form(operand) == Form::kTile) widest = Form::kTile;
      phase_.back() = std::max(phase_.back(), phase(operand));
    }
    TOKAMAK_CHECK(column_ || !value(v).reduces_rows(), "the CPU has no {} groups that sum over rows",
                  group_.kind->name);
    bool per_row = value(v).reduces_cols();
    if (!value(v).is_reduction() && widest == Form::kRow && program_.iteration.inner > 1 && tile_shaped(v))
      widest = Form::kTile;
    form_.back() = per_row ? Form::kRow : widest;
    phase_.back() += per_row;
  }

  bool tile_shaped(int v) const { return group_.is_full(value(v)) && group_.size() > 1; }

  void choose_chunk() {
    auto values = std::count_if(group_.values.begin(), group_.values.end(),
                                [](const GroupValue& v) { return !v.is_input() && !v.is(op::constant); });
    int64_t fit = kTileBytes / 4 / std::clamp<int64_t>(values, 1, 10) / 64 * 64;
    program_.chunk = std::min(program_.iteration.inner, std::clamp(fit, kMinChunk, kMaxChunk));
    recompute_ = program_.chunk < program_.iteration.inner;
  }

  // Everything that phase p must compute: what its reductions and stores need and, if a row has several chunks, once
  // more.
  void emit_phase(int p) {
    std::vector<bool> needed(size_t(count()), false);
    for (const GroupValue& v : group_.values)
      if (v.reduces_rows() || (v.reduces_cols() && phase(int(&v - group_.values.data())) == p + 1))
        needed[size_t(v.operands[0])] = true;
    for (const GroupResult& result : group_.results)
      if (phase(result.value) == p && !value(result.value).reduces_rows()) needed[size_t(result.value)] = true;
    for (int v = count(); v-- > 0;) {
      if (value(v).is_reduction() || form(v) != Form::kTile || !needed[size_t(v)]) continue;
      for (int operand : value(v).operands) needed[size_t(operand)] = true;
    }
    emit_rows(p);
    emit_tiles(p, needed);
    emit_stores(p);
  }

  void emit_rows(int p) {
    for (int v = 0; v < count(); ++v)
      if (is_computed(v) && form(v) == Form::kRow && phase(v) == p)
        program_.phases[size_t(p)].row.push_back(compute(v, p));
  }

  bool is_computed(int v) const { return !value(v).is_input() && !value(v).is_reduction(); }

  void emit_tiles(int p, const std::vector<bool>& needed) {
    for (int v = 0; v < count(); ++v) {
      if (value(v).is_reduction()) emit_reduce(v, p);
      bool computed_before = !recompute_ && emitted_.count(v);
      if (!is_computed(v) || form(v) != Form::kTile || !needed[size_t(v)] || computed_before) continue;
      program_.phases[size_t(p)].tile.push_back(compute(v, p));
      emitted_.insert(v);
    }
  }

  void emit_reduce(int v, int p) {
    bool here = column_ ? p == 0 : phase(v) == p + 1;
    if (!here) return;
    Instruction i = instruction(Instruction::Kind::kReduce, v);
    i.inputs = {operand(value(v).operands[0], p)};
    if (column_)
      i.result = mark_column_result(v);
    else
      i.output = {Operand::Kind::kRow, row_value(v)};
    program_.phases[size_t(p)].tile.push_back(std::move(i));
  }

  int mark_column_result(int v) {
    for (size_t r = 0; r < group_.results.size(); ++r)
      if (group_.results[r].value == v) {
        program_.results[r].column = true;
        program_.results[r].maximum = value(v).is(op::reduce_max);
        return int(r);
      }
    internal_error(__FILE__, __LINE__, "column reduction", "is no result of its group");
  }

  void emit_stores(int p) {
    for (size_t r = 0; r < group_.results.size(); ++r) {
      int v = group_.results[r].value;
      if (phase(v) != p || value(v).reduces_rows()) continue;
      bool per_row = form(v) != Form::kTile && !(tile_shaped(v) && program_.iteration.inner > 1);
      program_.results[r].per_row = per_row;
      Instruction i;
      i.kind = Instruction::Kind::kStore;
      i.result = int(r);
      i.inputs = {operand(v, p)};
      auto& phase = program_.phases[size_t(p)];
      (per_row ? phase.row : phase.tile).push_back(std::move(i));
    }
  }

  Instruction instruction(Instruction::Kind kind, int v) const {
    Instruction i;
    i.kind = kind;
    i.node.op = value(v).op;
    i.node.attrs = group_.attrs_of(value(v));
    return i;
  }

  Instruction compute(int v, int p) {
    Instruction i = instruction(Instruction::Kind::kCompute, v);
    if (value(v).is(op::random_uniform)) i.inputs.push_back({Operand::Kind::kRaw, int(value(v).outer)});
    for (int input : value(v).operands) i.inputs.push_back(operand(input, p));
    if (is_generator(value(v))) i.access = access_of_.at(v);
    i.output = form(v) == Form::kRow ? Operand{Operand::Kind::kRow, row_value(v)}
                                     : Operand{Operand::Kind::kRegister, register_key(v, p)};
    return i;
  }

  // Where an instruction of phase p finds a value; emits the load of an input that is not fp32.
  Operand operand(int v, int p) {
    if (value(v).is_input())
      return value(v).dtype == DType::kF32 ? Operand{Operand::Kind::kAccess, access_of_.at(v)} : load(v, p);
    if (form(v) == Form::kConstant) return {Operand::Kind::kConstant, constant_of_.at(v)};
    if (form(v) == Form::kRow) return {Operand::Kind::kRow, row_value(v)};
    return {Operand::Kind::kRegister, register_key(v, p)};
  }

  Operand load(int v, int p) {
    bool uniform = form(v) == Form::kRow;
    Operand to =
        uniform ? Operand{Operand::Kind::kRow, row_value(v)} : Operand{Operand::Kind::kRegister, register_key(v, p)};
    bool done = uniform || !recompute_ ? emitted_.count(v) : loaded_at_.count({v, p});
    emitted_.insert(v);
    loaded_at_.insert({v, p});
    if (done) return to;
    Instruction i;
    i.kind = Instruction::Kind::kLoad;
    i.output = to;
    i.access = access_of_.at(v);
    auto& phase = program_.phases[size_t(p)];
    (uniform ? phase.row : phase.tile).push_back(std::move(i));
    return to;
  }

  int row_value(int v) {
    auto [at, fresh] = row_values_.try_emplace(v, program_.num_row_values);
    if (fresh) ++program_.num_row_values;
    return at->second;
  }

  // Until allocate_registers, a register is named by its value and, where every phase computes anew, the phase.
  int register_key(int v, int p) const { return v + (recompute_ ? p : 0) * count(); }

  void allocate_registers() {
    std::vector<Instruction*> order;
    for (Phase& phase : program_.phases)
      for (Instruction& i : phase.tile) order.push_back(&i);
    std::map<int, size_t> last_use;
    for (size_t n = 0; n < order.size(); ++n)
      for (const Operand& o : order[n]->inputs)
        if (o.kind == Operand::Kind::kRegister) last_use[o.index] = n;
    std::map<int, int> held;
    std::vector<int> free;
    for (size_t n = 0; n < order.size(); ++n) {
      Instruction& i = *order[n];
      std::vector<int> dying;
      for (Operand& o : i.inputs) {
        if (o.kind != Operand::Kind::kRegister) continue;
        if (last_use.at(o.index) == n) dying.push_back(o.index);
        o.index = held.at(o.index);
      }
      bool writes = (i.kind == Instruction::Kind::kCompute || i.kind == Instruction::Kind::kLoad) &&
                    i.output.kind == Operand::Kind::kRegister;
      // Taken before the dying ones are given back: a load's conversion may not run in place.
      if (writes) {
        if (free.empty()) free.push_back(program_.num_registers++);
        held[i.output.index] = free.back();
        i.output.index = free.back();
        free.pop_back();
      }
      std::sort(dying.begin(), dying.end());
      dying.erase(std::unique(dying.begin(), dying.end()), dying.end());
      for (int key : dying) free.push_back(held.at(key));
    }
    mark_direct_stores();
  }

  // A value that is stored in fp32 right after it was computed is computed in place of the result.
  void mark_direct_stores() {
    for (Phase& phase : program_.phases)
      for (Instruction& store : phase.tile) {
        if (store.kind != Instruction::Kind::kStore || store.inputs[0].kind != Operand::Kind::kRegister) continue;
        if (program_.results[size_t(store.result)].dtype != DType::kF32) continue;
        // The last writer of that register before the store is the value's own instruction.
        Instruction* writer = nullptr;
        for (Instruction& i : phase.tile) {
          if (&i == &store) break;
          if (i.kind == Instruction::Kind::kCompute && i.output.kind == Operand::Kind::kRegister &&
              i.output.index == store.inputs[0].index)
            writer = &i;
        }
        if (writer && writer->result < 0) writer->result = store.result;
      }
  }

  // Result r may overlap argument a only if nothing reads a after r's element was written.
  void find_hazards() {
    size_t num_arguments = program_.argument_bytes.size();
    for (size_t r = 0; r < program_.results.size(); ++r) {
      std::vector<bool> hazard(num_arguments, false);
      bool written = false;
      for (const Phase& phase : program_.phases)
        for (const Instruction& i : phase.tile) {
          if (written)
            for (const Operand& o : i.inputs)
              if (o.kind == Operand::Kind::kAccess) mark(hazard, o.index);
          if (written && i.kind == Instruction::Kind::kLoad) mark(hazard, i.access);
          written |= i.result == int(r);
        }
      program_.read_after_write.push_back(std::move(hazard));
    }
  }

  void mark(std::vector<bool>& hazard, int access) const {
    if (int a = program_.access_argument[size_t(access)]; a >= 0) hazard[size_t(a)] = true;
  }

  const GroupBody& group_;
  bool column_;
  bool recompute_ = false;
  TileProgram program_;
  std::vector<Form> form_;  // by value
  std::vector<int> phase_;
  std::map<int, int> access_of_, constant_of_, row_values_;  // by value
  std::set<int> emitted_;
  std::set<std::pair<int, int>> loaded_at_;  // value, phase
};

}  // namespace

TileProgram compile_tiles(const GroupBody& group) { return Compiler(with_rounding(group)).run(); }

}  // namespace tokamak::cpu
