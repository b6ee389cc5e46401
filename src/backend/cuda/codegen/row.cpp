#include "backend/cuda/codegen/row.h"

#include "backend/cuda/codegen/combine.h"
#include "backend/cuda/codegen/row_writer.h"
#include "backend/cuda/device_types.h"
#include "graph/op_def.h"

#include <algorithm>

namespace tokamak::cuda {
namespace {

using Keep = RowPlan::Keep;

bool sums_rows(const GroupBody& body) {
  return std::any_of(body.values.begin(), body.values.end(), [](const GroupValue& v) { return v.reduces_rows(); });
}

}  // namespace

RowWriter::RowWriter(const GroupBody& body, int64_t shared_bytes) : RowWriter(body, std::nullopt, shared_bytes) {}

RowWriter::RowWriter(const GroupBody& body, Function function) : RowWriter(body, function, 0) {}

RowWriter::RowWriter(const GroupBody& body, std::optional<Function> function, int64_t shared_bytes)
    : body_(body), function_(function), sums_(sums_rows(body)), expression_(body),
      plan_(function ? plan_rows_of_block(body, expression_.unmasked_cols(), function->threads)
                     : plan_rows(body, expression_.unmasked_cols(), sums_, shared_bytes)),
      shortcuts_(find_shortcuts(body, expression_, plan_)),
      phases_(body, expression_, plan_.keep == Keep::kRegisters, [this](int v) { return is_pick(v); }) {
  for (size_t v = 0; v < body.values.size(); ++v)
    if (body.values[v].reduces_rows()) row_sums_.push_back(int(v));
  for (int p = 0; p < phases_.count(); ++p) {
    scratch_of_.push_back(combined_);
    combined_ += combined(p).size();
  }
}

GroupCode RowWriter::run() {
  write_constants();
  std::string at_a_time = sums_ ? fmt::format(", {}", plan_.at_a_time) : "";
  text_.open("extern \"C\" __global__ void __launch_bounds__(kTeam * kTeams{}) row_group({})", at_a_time,
             parameters(body_));
  text_.line("begin_kernel();");
  write_start();
  if (sums_) {
    if (plan_.ahead) write_load_function();
    text_.open("for (Index row = first_row; row < kRows; row += kStep)");
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

std::string RowWriter::run_function() {
  text_.line("using Index = uint32_t;");
  text_.line("constexpr Index kRows = {}, kCols = {};", body_.rows, body_.cols);
  text_.line("constexpr int kVector = {};  // elements of a thread side by side", plan_.vector);
  write_constants();
  text_.open("__device__ inline void make_rows(const RowArguments& arguments, {}* r{})",
             device_type(body_.results[size_t(function_->made)].type.dtype), function_->made);
  write_arguments();
  text_.line("const int lane = int(threadIdx.x) % kTeam, team = int(threadIdx.x) / kTeam;");
  text_.line("if (team >= kTeams) return;");
  write_shared();
  text_.open("for (Index row = team; row < kRows; row += kTeams)");
  write_row();
  text_.close();
  text_.close();
  return text_.str();
}

void RowWriter::write_arguments() {
  std::vector<DType> types(body_.inputs().size());
  for (const GroupValue& v : body_.values)
    if (v.outer != kNoValue) types[size_t(v.outer)] = v.dtype;
  for (size_t a = 0; a < types.size(); ++a)
    text_.line("const auto* a{0} = static_cast<const {1}*>(arguments.in[{0}]);", a, device_type(types[a]));
  for (size_t r = 0; r < body_.results.size(); ++r)
    if (int(r) != function_->made)
      text_.line("auto* r{0} = static_cast<{1}*>(arguments.out[{0}]);", r, device_type(body_.results[r].type.dtype));
}

std::string RowWriter::describe() const {
  const char* where = plan_.keep == Keep::kRegisters ? "stay in registers"
                      : plan_.keep == Keep::kShared  ? "stay in shared memory"
                                                     : "are read again in each phase";
  return fmt::format("{} threads a row, whose operands {}", plan_.team, where);
}

void RowWriter::write_constants() {
  text_.line("constexpr int kTeam = {}, kTeams = {};  // threads of a row, rows of a block at a time", plan_.team,
             plan_.teams);
  text_.line("constexpr int kVectors = {}, kWholeVectors = {};  // of a thread; those that need no check of the column",
             plan_.vectors, plan_.whole);
  text_.line("constexpr int kParts = kVector < 4 ? kVector : 4;  // of a thread's share of a reduction");
  if (sums_) text_.line("constexpr int kBlocks = {}, kSums = {};", plan_.blocks, row_sums_.size());
  if (sums_) text_.line("constexpr Index kStep = Index(kBlocks) * kTeams;  // from a team's row to its next");
  text_.blank();
}

void RowWriter::write_start() {
  text_.line("const int lane = int(threadIdx.x) % kTeam, team = int(threadIdx.x) / kTeam;");
  text_.line("const Index first_row = Index(blockIdx.x) * kTeams + team;");
  write_shared();
  for (int v : row_sums_) text_.line("float total{}[kVectors][kVector] = {{}};  // {}", v, value(v).op->name);
}

// What all rows share.
void RowWriter::write_shared() {
  if (needs_scratch())
    text_.line("__shared__ float scratch[kTeams][{}][{} * (kTeam / 32)];", takes_turns() ? 2 : 1, combined_);
  if (needs_scratch() && takes_turns()) text_.line("int turn = 0;  // rows take turns with the scratch");
  for (int v = 0; v < count(); ++v)
    if (expression_.level(v) == Level::kScalar && !value(v).is_reduction()) write_single(v);
}

void RowWriter::write_single(int v) {
  if (is_loaded_ahead(v))
    text_.line("const float v{0} = now.x{0};", v);
  else
    text_.line("{}", expression_.definition(v));
}

void RowWriter::write_row() {
  if (plan_.ahead)
    write_exchange();
  else
    write_loads();
  for (auto [v, phase] : phases_.kept()) text_.line("float kept{}[kVectors][kVector];", v);
  for (int p = 0; p < phases_.count(); ++p) {
    for (int v = 0; v < count(); ++v)
      if (expression_.level(v) == Level::kRow && !value(v).is_reduction() && phases_.phase(v) == p) write_single(v);
    write_row_results(p);
    write_phase(p);
    finish_reductions(p);
  }
  if (needs_scratch() && takes_turns()) text_.line("turn ^= 1;");
  if (plan_.ahead) text_.line("now = next;");
}

void RowWriter::write_row_results(int p) {
  for (size_t r = 0; r < body_.results.size(); ++r) {
    int v = body_.results[r].value;
    if (value(v).along_cols || value(v).reduces_rows() || phases_.phase(v) != p) continue;
    text_.line("if (lane == 0) from_float({}, r{}[row]);", expression_.name(v), r);
  }
}

void RowWriter::write_phase(int p) {
  std::vector<int> reductions = phases_.reductions(p), stores = phases_.stores(p), sums = phases_.row_sums(p);
  text_.line("// phase {} of {}", p, phases_.count());
  VectorCode code;
  code.values = phases_.values(p);
  bool work = !stores.empty() || !sums.empty();
  for (int v : reductions) {
    int operand = value(v).operands[0];
    if (expression_.level(operand) != Level::kTile || is_pick(v)) continue;
    work = true;
    text_.line("float part{}[kParts];", v);
    text_.line("for (int i = 0; i < kParts; ++i) part{}[i] = {}::start();  // {}", v, combine_name(value(v)),
               value(v).op->name);
    bool packed = shortcuts_.packed_max.count(v) > 0;
    if (packed) text_.line("PackedMax top{};", v);
    code.actions.push_back(fmt::format("{}part{}[i % kParts] = {};", packed ? "if (!whole.value) " : "", v,
                                       combined_with(v, fmt::format("part{}[i % kParts]", v))));
  }
  if (!work) return;
  for (int v : sums)
    code.actions.push_back(fmt::format("total{}[k][i] = {};", v, combined_with(v, fmt::format("total{}[k][i]", v))));
  for (int r : stores)
    code.actions.push_back(fmt::format("y{}[i] = {};", r, expression_.stored(body_.results[size_t(r)])));
  for (auto [v, phase] : phases_.kept())
    if (phase == p) code.actions.push_back(fmt::format("kept{0}[k][i] = v{0};", v));
  write_phase_loops(p, code, stores);
}

void RowWriter::write_phase_loops(int p, VectorCode& code, const std::vector<int>& stores) {
  const int hot = one_hot(code.values);
  text_.open("const auto phase{} = [&](int k, auto whole{})", p, hot < 0 ? "" : ", auto hit");
  text_.line("const Index column = (Index(k) * kTeam + lane) * kVector;");
  text_.line("if (!whole.value && column >= kCols) return;");
  for (int v : code.values) write_source(v);
  for (int r : stores) text_.line("float y{}[kVector];", r);
  code.source = [&](int v) -> std::string {
    if (phases_.reads_kept(v, p)) return fmt::format("kept{}[k][i]", v);
    if (hot >= 0 && shortcuts_.one_hot.count(v) && shortcuts_.one_hot.at(v) == hot)
      return fmt::format("hit.value ? scalar::equal({}, {}) : 0.0f", expression_.name(value(v).operands[0]),
                         expression_.name(value(v).operands[1]));
    if (!value(v).is_input()) return "";
    return in_registers(v) ? fmt::format("x{}[k][i]", v) : fmt::format("p{}[i]", v);
  };
  for (int v : phases_.reductions(p))
    if (auto found = shortcuts_.packed_max.find(v); found != shortcuts_.packed_max.end())
      text_.line("if (whole.value) add_packed(top{}, {}{}{});", v, in_registers(found->second) ? "x" : "p",
                 found->second, in_registers(found->second) ? "[k]" : "");
  write_vector(text_, body_, expression_, code);
  for (int r : stores)
    text_.line("{1}store_vector<kVector>(r{0} + row * kCols + column, y{0});", r,
               function_ && r != function_->made ? "if (blockIdx.x == 0) " : "");
  text_.close("};");
  if (hot >= 0) write_choice(p, hot);
  const char* unroll = unrolled() ? "#pragma unroll" : "#pragma unroll 2";
  const char* function = hot < 0 ? "phase" : "choose";
  text_.line("{}", unroll);
  text_.line("for (int k = 0; k < kWholeVectors; ++k) {}{}(k, Bool<true>());", function, p);
  text_.line("{}", unroll);
  text_.line("for (int k = kWholeVectors; k < kVectors; ++k) {}{}(k, Bool<false>());", function, p);
}

// The value of the row that columns are compared with; -1: none.
int RowWriter::one_hot(const std::vector<int>& values) const {
  for (int v : values)
    if (auto found = shortcuts_.one_hot.find(v); found != shortcuts_.one_hot.end()) return found->second;
  return -1;
}

// One vector of the row compares its columns; the others need not.
void RowWriter::write_choice(int p, int hot) {
  text_.open("const auto choose{} = [&](int k, auto whole)", p);
  text_.line("const float place = {} - float((Index(k) * kTeam + lane) * kVector);", expression_.name(hot));
  text_.line("if (place >= 0.0f && place < float(kVector))");
  text_.line("  phase{}(k, whole, Bool<true>());", p);
  text_.line("else");
  text_.line("  phase{}(k, whole, Bool<false>());", p);
  text_.close("};");
}

GroupCode generate_row(const GroupBody& body, int64_t shared_bytes) { return RowWriter(body, shared_bytes).run(); }

std::string generate_row_function(const GroupBody& body, int made, int threads) {
  return RowWriter(body, RowWriter::Function{made, threads}).run_function();
}

int64_t row_workspace_bytes(const GroupBody& body, int64_t shared_bytes) {
  return sums_rows(body) ? partial_bytes(body, plan_rows(body, 0, true, shared_bytes).blocks) : 0;
}

}  // namespace tokamak::cuda
