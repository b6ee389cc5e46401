// A pass is one free function on the graph, a row of the table in pipeline.cpp, and a test. What it may know comes in
// as plain data; passes speak to each other through members of Node only (keep_whole, recompute).
#pragma once

#include "config/compile_config.h"
#include "graph/graph.h"
#include "graph/mesh.h"
#include "graph/platform.h"
#include "passes/format_policy.h"

#include <functional>
#include <span>
#include <string_view>

namespace tokamak {

struct PassContext : Platform {
  CompileConfig options;
  bool low_parameters = false;  // whether the graph may say in which float type its parameters are stored
  Mesh mesh = {};               // that the step is divided over
  int64_t zero = 0;             // mesh.zero
  bool gathers_once = false;    // with zero 1 or 2: parameters are cut, too, and gathered for both passes together
  int64_t bucket_mib = 0;       // mesh.bucket_mib
  bool sequence = false;        // mesh.sequence
  bool async_tensor = false;    // mesh.async_tensor
  int64_t slots = 1;            // mesh.slots, which is not 0 here
  bool own_inputs = false;      // every data rank has inputs of its own: a slot
  double loss_weight = 0;       // of each row's loss in the graph's; 0: the input loss_weight tells it
  FormatPolicy formats = {};    // of products; none: that of options.precision
  /// Whether the update of a parameter reads all of it (autodiff/optimizer_rule.h); none: of no parameter.
  std::function<bool(const Argument& parameter)> updates_whole = {};
  bool rows_in_parts = true;  // what the optimizer keeps of a matrix lies as the matrix does, so its rows may be apart
  /// Of values that are computed again, not as many as the budget needs, but all of so many kinds; -1: by the budget.
  int64_t recompute_kinds = -1;
  /// The same of exactly so many nodes, for a graph whose forward pass is that of another one; -1: by the budget.
  int64_t recompute_nodes = -1;
  /// GiB that choose_recompute counts to (compile/fill_budget.h); 0: options.memory_budget_gib.
  double recompute_gib = 0;
  /// Of how many micro-batches a stage of a pipeline holds, within these GiB, what their backward passes read.
  int64_t micro_batches_held = 1;
  /// Whether it is checked what each pass makes: not where graphs are only looked at, by the hundred.
  bool verifies = true;
};

/// When a pass runs: kForward before differentiation; kRewrite on all of a step's forward and backward pass together,
/// then kRecompute, which is what depends on what is computed again; after these, kProgram on each of the programs into
/// which that may be divided. To run kWhole is to run kRewrite and kRecompute, and kStep all three.
enum class PassStage : uint8_t { kForward, kRewrite, kRecompute, kProgram, kWhole, kStep };
enum class Numerics : uint8_t { kExact, kTolerance };  // bit for bit the same, or within rounding
enum class Effects : uint8_t { kKept, kChanged };      // whether it may append, join or move nodes with effects

struct Pass {
  std::string_view name;
  PassStage stage;
  Numerics numerics;
  Effects effects;
  bool (*enabled)(const PassContext&);      // by options and target, beside is_enabled
  bool (*run)(Graph&, const PassContext&);  // returns whether the graph changed
  std::string_view summary;                 // one line for docs/cli.md
};

/// All passes in the order in which they run.
std::span<const Pass> pipeline();

/// UserError for a name in compile.disable_passes that no pass has.
void check_disabled_names(const std::vector<std::string>& names);
/// Whether compile.disable_passes leaves the pass of that name on.
bool is_enabled(const PassContext& context, std::string_view pass);

struct PassReport {
  std::string_view name;
  bool skipped = false;
  bool changed = false;
  double milliseconds = 0;
  std::vector<std::pair<std::string, int>> op_changes;  // op name -> difference in count
};

/// Called after each pass that changed the graph.
using PassObserver = std::function<void(const Pass&, const Graph& after)>;

/// Runs one pass, verifies what it made, and returns whether the graph changed. Whatever is thrown there comes out as
/// an InternalError that names the pass, as in "[pass fuse] ... (in %5 = mul(%3, %4))".
bool run_pass(const Pass& pass, Graph& graph, const PassContext& context);

/// Runs the passes of one stage over the graph: skip if disabled, run, verify, compare, time.
std::vector<PassReport> run_passes(Graph& graph, PassStage stage, const PassContext& context,
                                   const PassObserver& observer = {});

}  // namespace tokamak
