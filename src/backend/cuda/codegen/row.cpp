#include "backend/cuda/codegen/row.h"

#include "backend/cuda/codegen/combine.h"
#include "backend/cuda/codegen/row_phases.h"
#include "backend/cuda/codegen/row_plan.h"
#include "backend/cuda/device_types.h"
#include "ops/ops.h"

#include <algorithm>

namespace tokamak::cuda {
namespace {

using Keep = RowPlan::Keep;

bool sums_rows(const GroupBody& body) {
  return std::any_of(body.values.begin(), body.values.end(), [](const BodyValue& v) { return v.reduces_rows(); });
}

class RowWriter {
 public:
  RowWriter(const GroupBody& body, int64_t shared_bytes)
      : body_(body), sums_(sums_rows(body)), expression_(body),
        plan_(plan_rows(body, expression_.unmasked_cols(), sums_, shared_bytes)),
        phases_(body, expression_, plan_.keep == Keep::kRegisters) {
    for (size_t v = 0; v < body.values.size(); ++v) {
      if (body.values[v].reduces_cols()) scratch_of_[int(v)] = int(scratch_of_.size());
      if (body.values[v].reduces_rows()) row_sums_.push_back(int(v));
    }
  }

  GroupCode run() {
    write_constants();
    std::string at_a_time =
        sums_ ? fmt::format(", {}", std::max(RowPlan::kSumThreadsEach / plan_.block_threads(), 1)) : "";
    text_.open("extern \"C\" __global__ void __launch_bounds__(kTeam * kTeams{}) row_group({})", at_a_time,
               parameters(body_));
    write_start();
    if (sums_) {
      text_.open("for (Index row = first_row; row < kRows; row += Index(kBlocks) * kTeams)");
      write_row();
      text_.close();
      write_partial(text_, row_sums_, plan_.teams);
    } else {
      text_.line("const Index row = first_row;");
      text_.line("if (row >= kRows) return;");
      write_row();
    }
    text_.close();
    GroupLaunch launch{.function = "row_group", .blocks_x = plan_.blocks, .threads_x = plan_.block_threads()};
    launch.shared_bytes = plan_.shared_bytes;
    GroupCode code{prelude(body_, plan_.vector, describe()) + text_.str(), {launch}, 0};
    if (sums_) add_combine(code, body_, row_sums_, plan_.blocks);
    return code;
  }

 private:
  std::string describe() const {
    const char* where = plan_.keep == Keep::kRegisters ? "stay in registers"
                        : plan_.keep == Keep::kShared  ? "stay in shared memory"
                                                       : "are read again in each phase";
    return fmt::format("{} threads a row, whose operands {}", plan_.team, where);
  }

  void write_constants() {
    text_.line("constexpr int kTeam = {}, kTeams = {};  // threads of a row, rows of a block at a time", plan_.team,
               plan_.teams);
    text_.line(
        "constexpr int kVectors = {}, kWholeVectors = {};  // of a thread; those that need no check of the column",
        plan_.vectors, plan_.whole);
    text_.line("constexpr int kParts = kVector < 4 ? kVector : 4;  // of a thread's share of a reduction");
    if (sums_) text_.line("constexpr int kBlocks = {}, kSums = {};", plan_.blocks, row_sums_.size());
    text_.blank();
  }

  const BodyValue& value(int v) const { return body_.values[size_t(v)]; }
  bool is_operand(int v) const { return is_row_operand(body_, value(v)); }
  int count() const { return int(body_.values.size()); }
  bool unrolled() const { return plan_.keep == Keep::kRegisters; }

  void write_start() {
    text_.line("const int lane = int(threadIdx.x) % kTeam, team = int(threadIdx.x) / kTeam;");
    text_.line("const Index first_row = Index(blockIdx.x) * kTeams + team;");
    if (plan_.team > 32 && !scratch_of_.empty())
      text_.line("__shared__ float scratch[{}][kTeam / 32];", scratch_of_.size() * (sums_ ? 2 : 1));
    if (plan_.team > 32 && sums_ && !scratch_of_.empty())
      text_.line("int turn = 0;  // rows take turns with the scratch");
    for (int v = 0; v < count(); ++v)
      if (expression_.level(v) == Level::kScalar && !value(v).is_reduction()) write_single(v);
    for (int v : row_sums_) text_.line("float total{}[kVectors][kVector] = {{}};  // {}", v, value(v).node->op->name);
  }

  void write_single(int v) {
    if (value(v).is_argument())
      text_.line("const float v{} = to_float(a{}[{}]);", v, value(v).argument, expression_.place(v));
    else
      text_.line("{}", expression_.statement(v));
  }

  void write_row() {
    write_loads();
    for (auto [v, phase] : phases_.kept()) text_.line("float kept{}[kVectors][kVector];", v);
    for (int p = 0; p < phases_.count(); ++p) {
      for (int v = 0; v < count(); ++v)
        if (expression_.level(v) == Level::kRow && !value(v).is_reduction() && phases_.phase(v) == p) write_single(v);
      write_row_results(p);
      write_phase(p);
      for (int v : phases_.reductions(p)) finish_reduction(v);
    }
    if (plan_.team > 32 && sums_ && !scratch_of_.empty()) text_.line("turn ^= 1;");
  }

  // Every operand of the row, once.
  void write_loads() {
    if (plan_.keep == Keep::kNothing) return;
    if (plan_.keep == Keep::kShared) text_.line("extern __shared__ __align__(16) unsigned char staged[];");
    int64_t at = 0;
    for (int v = 0; v < count(); ++v) {
      if (!is_operand(v)) continue;
      const char* type = device_type(value(v).dtype);
      if (plan_.keep == Keep::kRegisters) {
        text_.line("Packed<{}, kVector> x{}[kVectors];", type, v);
      } else {
        text_.line("{0}* const x{1} = reinterpret_cast<{0}*>(staged + {2});", type, v, at);
        at += staged_bytes(body_, value(v));
      }
    }
    write_vector_loop([&] {
      for (int v = 0; v < count(); ++v) {
        if (!is_operand(v)) continue;
        if (plan_.keep == Keep::kRegisters)
          text_.line("x{}[k] = load_packed<kVector>(a{} + {});", v, value(v).argument, expression_.place(v));
        else
          text_.line("stage<kVector>(x{} + column, a{} + {});", v, value(v).argument, expression_.place(v));
      }
    });
    if (plan_.keep == Keep::kShared) text_.line("wait_for_staged();");
  }

  template <typename Body>
  void write_vector_loop(const Body& body) {
    if (unrolled()) text_.unroll();
    text_.open("for (int k = 0; k < kVectors; ++k)");
    text_.line("const Index column = (Index(k) * kTeam + lane) * kVector;");
    text_.line("if (k >= kWholeVectors && column >= kCols) continue;");
    body();
    text_.close();
  }

  void write_row_results(int p) {
    for (size_t r = 0; r < body_.results.size(); ++r) {
      int v = body_.results[r].value;
      if (value(v).along_cols || value(v).reduces_rows() || phases_.phase(v) != p) continue;
      text_.line("if (lane == 0) from_float({}, r{}[row]);", expression_.name(v), r);
    }
  }

  void write_phase(int p) {
    std::vector<int> reductions = phases_.reductions(p), stores = phases_.stores(p), sums = phases_.row_sums(p);
    text_.line("// phase {} of {}", p, phases_.count());
    VectorCode code;
    code.values = phases_.values(p);
    bool work = !stores.empty() || !sums.empty();
    for (int v : reductions) {
      int operand = value(v).operands[0];
      if (expression_.level(operand) != Level::kTile) continue;
      work = true;
      text_.line("float part{}[kParts];", v);
      text_.line("for (int i = 0; i < kParts; ++i) part{}[i] = {}::start();  // {}", v, combine_name(value(v)),
                 value(v).node->op->name);
      code.actions.push_back(fmt::format("part{0}[i % kParts] = {1}::combine(part{0}[i % kParts], {2});", v,
                                         combine_name(value(v)), expression_.name(operand)));
    }
    if (!work) return;
    for (int v : sums)
      code.actions.push_back(fmt::format("total{0}[k][i] += {1};", v, expression_.name(value(v).operands[0])));
    for (int r : stores)
      code.actions.push_back(fmt::format("y{}[i] = {};", r, expression_.stored(body_.results[size_t(r)])));
    for (auto [v, phase] : phases_.kept())
      if (phase == p) code.actions.push_back(fmt::format("kept{0}[k][i] = v{0};", v));
    write_phase_loops(p, code, stores);
  }

  void write_phase_loops(int p, VectorCode& code, const std::vector<int>& stores) {
    text_.open("const auto phase{} = [&](int k, auto whole)", p);
    text_.line("const Index column = (Index(k) * kTeam + lane) * kVector;");
    text_.line("if (!whole.value && column >= kCols) return;");
    for (int v : code.values) write_source(v);
    for (int r : stores) text_.line("float y{}[kVector];", r);
    code.source = [&](int v) -> std::string {
      if (phases_.reads_kept(v, p)) return fmt::format("kept{}[k][i]", v);
      if (!value(v).is_argument()) return "";
      return is_operand(v) && unrolled() ? fmt::format("x{}[k][i]", v) : fmt::format("p{}[i]", v);
    };
    write_vector(text_, body_, expression_, code);
    for (int r : stores) text_.line("store_vector<kVector>(r{0} + row * kCols + column, y{0});", r);
    text_.close("};");
    const char* unroll = unrolled() ? "#pragma unroll" : "#pragma unroll 2";
    text_.line("{}", unroll);
    text_.line("for (int k = 0; k < kWholeVectors; ++k) phase{}(k, Bool<true>());", p);
    text_.line("{}", unroll);
    text_.line("for (int k = kWholeVectors; k < kVectors; ++k) phase{}(k, Bool<false>());", p);
  }

  // The packed vector of an argument that is not in registers.
  void write_source(int v) {
    if (!value(v).is_argument() || (is_operand(v) && unrolled())) return;
    if (is_operand(v) && plan_.keep == Keep::kShared)
      text_.line("const auto p{0} = load_packed<kVector>(x{0} + column);", v);
    else
      text_.line("const auto p{} = load_packed<kVector>(a{} + {});", v, value(v).argument, expression_.place(v));
  }

  void finish_reduction(int v) {
    int operand = value(v).operands[0];
    const char* op = combine_name(value(v));
    if (expression_.level(operand) != Level::kTile) {  // the same in every column
      bool sum = value(v).is(op::reduce_sum);
      text_.line("const float v{} = {}{};  // {}", v, expression_.name(operand), sum ? " * float(kCols)" : "",
                 value(v).node->op->name);
      return;
    }
    std::string scratch = "nullptr";
    if (plan_.team > 32)
      scratch = sums_ ? fmt::format("scratch[{} + turn]", 2 * scratch_of_.at(v))
                      : fmt::format("scratch[{}]", scratch_of_.at(v));
    text_.line("const float v{0} = combine_team<{1}, kTeam>(combine_own<{1}, kParts>(part{0}), {2});", v, op, scratch);
  }

  const GroupBody& body_;
  bool sums_;
  Expression expression_;
  RowPlan plan_;
  RowPhases phases_;
  std::map<int, int> scratch_of_;  // reduction -> its scratch
  std::vector<int> row_sums_;
  Text text_;
};

}  // namespace

GroupCode generate_row(const GroupBody& body, int64_t shared_bytes) { return RowWriter(body, shared_bytes).run(); }

}  // namespace tokamak::cuda
