#include "backend/cpu/tile_program.h"

#include "backend/cpu/merge_loops.h"
#include "base/error.h"
#include "graph/op_def.h"
#include "ops/generate.h"
#include "ops/reduce.h"

#include <algorithm>
#include <map>
#include <set>

namespace tokamak::cpu {
namespace {

constexpr int64_t kTileBytes = 32 << 10;  // registers of a tile together: most of an L1
constexpr int64_t kMinChunk = 256, kMaxChunk = 2048;

// What a body value is while a row is worked on.
enum class Form : uint8_t { kConstant, kRow, kTile, kRaw };

bool is_reduce(const Node& node) { return node.op->fusion == Fusion::kReduction; }
bool is_view(const Node& node) { return node.op->fusion == Fusion::kView; }
bool is_generator(const Node& node) { return node.op == &op::iota || node.op == &op::random_uniform; }

class Compiler {
 public:
  Compiler(std::shared_ptr<const Graph> body, const Shape& space, size_t boundary, bool column)
      : body_(*body), space_(space), boundary_(boundary), column_(column) {
    program_.body = std::move(body);
  }

  TileProgram run() {
    follow_views();
    collect_accesses();
    classify();
    int last = *std::max_element(phase_.begin(), phase_.end());
    program_.phases.resize(size_t(last) + 1);
    program_.results.resize(body_.results().size());
    choose_chunk();
    for (int p = 0; p <= last; ++p) emit_phase(p);
    merge_loops(program_);
    allocate_registers();
    find_hazards();
    return std::move(program_);
  }

 private:
  const Node* maker(ValueId v) const {
    return body_.producer(v) < 0 ? nullptr : &body_.nodes()[size_t(body_.producer(v))];
  }
  ValueId root(ValueId v) const { return root_[size_t(v)]; }
  Form form(ValueId v) const { return form_[size_t(v)]; }

  // A reshape inside a body only adds or removes dims of size 1: it is its input, seen with another shape.
  void follow_views() {
    root_.resize(size_t(body_.num_values()));
    for (ValueId v = 0; v < body_.num_values(); ++v) root_[size_t(v)] = v;
    for (const Node& node : body_.nodes())
      if (is_view(node)) root_[size_t(node.outputs[0])] = root(node.inputs[0]);
  }

  int argument_index(ValueId v) const {
    for (size_t i = 0; i < body_.arguments().size(); ++i)
      if (body_.arguments()[i].value == v) return int(i);
    return -1;
  }

  // One access for each (argument, shape it is read with), one for each generator.
  void collect_accesses() {
    std::vector<Shape> shapes;
    auto add_access = [&](ValueId v, int argument, DType dtype) {
      access_of_[v] = int(shapes.size());
      shapes.push_back(body_.shape(v));
      program_.access_argument.push_back(argument);
      program_.access_dtype.push_back(dtype);
    };
    for (const Node& node : body_.nodes()) {
      if (is_generator(node)) add_access(node.outputs[0], -1, DType::kF32);
      if (is_view(node) || is_generator(node)) continue;
      for (ValueId v : node.inputs) note_argument(v, add_access);
    }
    for (const Result& result : body_.results()) note_argument(result.value, add_access);
    program_.iteration = make_iteration(space_, boundary_, shapes);
    if (boundary_ > 0 && !column_)
      TOKAMAK_CHECK(program_.iteration.outer.size() == program_.iteration.row_dims,
                    "a row group needs rows of one stride");
  }

  template <typename Add>
  void note_argument(ValueId v, const Add& add_access) {
    int argument = argument_index(root(v));
    if (argument >= 0 && !access_of_.count(v)) add_access(v, argument, body_.dtype(v));
  }

  void classify() {
    form_.assign(size_t(body_.num_values()), Form::kRaw);
    phase_.assign(size_t(body_.num_values()), 0);
    for (const auto& [v, access] : access_of_)
      form_[size_t(v)] = program_.iteration.accesses[size_t(access)].uniform ? Form::kRow : Form::kTile;
    for (const Node& node : body_.nodes()) {
      ValueId out = node.outputs[0];
      if (argument_index(root(out)) >= 0) continue;
      if (is_view(node)) {
        form_[size_t(out)] = form(root(out));
        phase_[size_t(out)] = phase_[size_t(root(out))];
      } else if (node.op == &op::constant) {
        form_[size_t(out)] = Form::kConstant;
        constant_of_[out] = int(program_.constants.size());
        program_.constants.push_back(float(node.attrs.get_double("value")));
      } else if (!is_generator(node)) {
        classify_computed(node);
      }
    }
  }

  void classify_computed(const Node& node) {
    ValueId out = node.outputs[0];
    Form widest = Form::kRow;
    int phase = 0;
    for (ValueId input : node.inputs) {
      if (form(input) == Form::kTile) widest = Form::kTile;
      phase = std::max(phase, phase_[size_t(input)]);
    }
    bool reduce = is_reduce(node) && !column_;
    if (!is_reduce(node) && widest == Form::kRow && program_.iteration.inner > 1 && tile_shaped(body_.shape(out)))
      widest = Form::kTile;
    form_[size_t(out)] = reduce ? Form::kRow : widest;
    phase_[size_t(out)] = phase + (reduce ? 1 : 0);
  }

  bool tile_shaped(const Shape& shape) const {
    return num_elements(shape) == num_elements(space_) && num_elements(shape) > 1;
  }

  void choose_chunk() {
    int64_t values = 0;
    for (const Node& node : body_.nodes()) values += !is_view(node) && node.op != &op::constant;
    int64_t fit = kTileBytes / 4 / std::clamp<int64_t>(values, 1, 10) / 64 * 64;
    program_.chunk = std::min(program_.iteration.inner, std::clamp(fit, kMinChunk, kMaxChunk));
    recompute_ = program_.chunk < program_.iteration.inner;
  }

  // Everything that phase p must compute: what its reductions and stores need and, if a row has several chunks, once
  // more.
  void emit_phase(int p) {
    std::vector<bool> needed(size_t(body_.num_values()), false);
    auto need = [&](ValueId v) { needed[size_t(root(v))] = needed[size_t(v)] = true; };
    for (const Node& node : body_.nodes())
      if (is_reduce(node) && (column_ || phase_[size_t(node.outputs[0])] == p + 1)) need(node.inputs[0]);
    for (const Result& result : body_.results())
      if (phase_[size_t(result.value)] == p && !column_reduction(result.value)) need(result.value);
    for (size_t n = body_.nodes().size(); n-- > 0;) {
      const Node& node = body_.nodes()[n];
      ValueId out = node.outputs[0];
      if (is_view(node) || is_reduce(node) || form(out) != Form::kTile || !needed[size_t(out)]) continue;
      for (ValueId input : node.inputs) need(input);
    }
    emit_rows(p);
    emit_tiles(p, needed);
    emit_stores(p);
  }

  bool column_reduction(ValueId v) const {
    const Node* node = maker(root(v));
    return column_ && node && is_reduce(*node);
  }

  void emit_rows(int p) {
    for (const Node& node : body_.nodes()) {
      ValueId out = node.outputs[0];
      if (is_view(node) || is_reduce(node) || form(out) != Form::kRow || phase_[size_t(out)] != p) continue;
      program_.phases[size_t(p)].row.push_back(compute(node, p));
    }
  }

  void emit_tiles(int p, const std::vector<bool>& needed) {
    auto& tile = program_.phases[size_t(p)].tile;
    for (const Node& node : body_.nodes()) {
      ValueId out = node.outputs[0];
      if (is_reduce(node)) {
        emit_reduce(node, p);
        continue;
      }
      bool computed_before = !recompute_ && emitted_.count(out);
      if (is_view(node) || form(out) != Form::kTile || !needed[size_t(out)] || computed_before) continue;
      tile.push_back(compute(node, p));
      emitted_.insert({out, p});
    }
  }

  void emit_reduce(const Node& node, int p) {
    bool here = column_ ? p == 0 : phase_[size_t(node.outputs[0])] == p + 1;
    if (!here) return;
    Instruction i = instruction(Instruction::Kind::kReduce, &node);
    i.inputs = {operand(node.inputs[0], p)};
    if (column_)
      i.result = mark_column_result(node);
    else
      i.output = {Operand::Kind::kRow, row_value(node.outputs[0])};
    program_.phases[size_t(p)].tile.push_back(std::move(i));
  }

  int mark_column_result(const Node& node) {
    for (size_t r = 0; r < body_.results().size(); ++r)
      if (root(body_.results()[r].value) == node.outputs[0]) {
        program_.results[r] = {body_.dtype(body_.results()[r].value), false, true, node.op == &op::reduce_max};
        return int(r);
      }
    internal_error(__FILE__, __LINE__, "column reduction", "is no result of its group");
  }

  void emit_stores(int p) {
    for (size_t r = 0; r < body_.results().size(); ++r) {
      ValueId v = body_.results()[r].value;
      if (phase_[size_t(v)] != p || column_reduction(v)) continue;
      bool per_row = form(v) != Form::kTile && !(tile_shaped(body_.shape(v)) && program_.iteration.inner > 1);
      program_.results[r] = {body_.dtype(v), per_row, false, false};
      Instruction i = instruction(Instruction::Kind::kStore, nullptr);
      i.result = int(r);
      i.inputs = {operand(v, p)};
      auto& phase = program_.phases[size_t(p)];
      (per_row ? phase.row : phase.tile).push_back(std::move(i));
    }
  }

  static Instruction instruction(Instruction::Kind kind, const Node* node) {
    Instruction i;
    i.kind = kind;
    i.node = node;
    return i;
  }

  Instruction compute(const Node& node, int p) {
    Instruction i = instruction(Instruction::Kind::kCompute, &node);
    ValueId out = node.outputs[0];
    for (ValueId input : node.inputs)
      i.inputs.push_back(node.op == &op::random_uniform ? Operand{Operand::Kind::kRaw, argument_index(input)}
                                                        : operand(input, p));
    if (is_generator(node)) i.access = access_of_.at(out);
    i.output = form(out) == Form::kRow ? Operand{Operand::Kind::kRow, row_value(out)}
                                       : Operand{Operand::Kind::kRegister, register_key(out, p)};
    return i;
  }

  // Where an instruction of phase p finds a value; emits the load of an argument that is not fp32.
  Operand operand(ValueId v, int p) {
    if (auto access = access_of_.find(v); access != access_of_.end() && argument_index(root(v)) >= 0) {
      if (body_.dtype(v) == DType::kF32) return {Operand::Kind::kAccess, access->second};
      return load(v, access->second, p);
    }
    ValueId r = root(v);
    if (form(r) == Form::kConstant) return {Operand::Kind::kConstant, constant_of_.at(r)};
    if (form(r) == Form::kRow) return {Operand::Kind::kRow, row_value(r)};
    return {Operand::Kind::kRegister, register_key(r, p)};
  }

  Operand load(ValueId v, int access, int p) {
    bool uniform = program_.iteration.accesses[size_t(access)].uniform;
    Operand to =
        uniform ? Operand{Operand::Kind::kRow, row_value(v)} : Operand{Operand::Kind::kRegister, register_key(v, p)};
    bool done = uniform || !recompute_ ? emitted_.count(v) : emitted_at_.count({v, p});
    emitted_.insert({v, p});
    emitted_at_.insert({v, p});
    if (done) return to;
    Instruction i = instruction(Instruction::Kind::kLoad, nullptr);
    i.output = to;
    i.access = access;
    auto& phase = program_.phases[size_t(p)];
    (uniform ? phase.row : phase.tile).push_back(std::move(i));
    return to;
  }

  int row_value(ValueId v) {
    auto [at, fresh] = row_values_.try_emplace(v, program_.num_row_values);
    if (fresh) ++program_.num_row_values;
    return at->second;
  }

  // Until allocate_registers, a register is named by its value and, where every phase computes anew, the phase.
  int register_key(ValueId v, int p) const { return v + (recompute_ ? p : 0) * body_.num_values(); }

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
    size_t num_arguments = body_.arguments().size();
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

  const Graph& body_;
  Shape space_;
  size_t boundary_;
  bool column_;
  bool recompute_ = false;
  TileProgram program_;
  std::vector<ValueId> root_;
  std::vector<Form> form_;
  std::vector<int> phase_;
  std::map<ValueId, int> access_of_, constant_of_, row_values_;
  std::map<ValueId, int> emitted_;  // -> phase of the first emission
  std::set<std::pair<ValueId, int>> emitted_at_;
};

}  // namespace

TileProgram compile_tiles(std::shared_ptr<const Graph> body, const Shape& space, size_t boundary, bool column) {
  return Compiler(std::move(body), space, boundary, column).run();
}

}  // namespace tokamak::cpu
