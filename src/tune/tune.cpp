#include "tune/tune.h"

#include "backend/kernel_tuning.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/json.h"
#include "compile/compiled_run.h"
#include "compile/memory_advice.h"
#include "exec/collective_kernel.h"
#include "exec/measure.h"
#include "graph/single_node.h"
#include "graph/text.h"
#include "ops/group.h"
#include "ops/row_block.h"
#include "passes/float8_choice.h"
#include "tune/tuning_record.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <tuple>

namespace tokamak {
namespace {

using nlohmann::json;

constexpr double kGain = 1 - 1e-6;  // less is the rounding of a sum

// Appends the plan's matmul groups, in order.
void add_matmul_groups(const Plan& plan, std::vector<std::string>& keys) {
  for (const Launch& launch : plan.launches) {
    const Node& node = plan.graph.nodes()[size_t(launch.node)];
    if (node.op != &op::fused_matmul) continue;
    std::string key = kernel_key(plan.graph, node);
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(std::move(key));
  }
}

std::string name_of(const std::vector<CompiledGraph>& programs) {
  std::string text;
  for (const CompiledGraph& program : programs) text += print(program.plan.graph);
  return format_checksum(checksum(std::as_bytes(std::span(text))));
}

// With slots the run of one data rank and one stage: how many there are must not change a bit, so not a choice either.
// Products that begin with a rank's own rows have the forms of whole ones.
ResolvedRun chosen_for(const ResolvedRun& run, const Target& target) {
  if (!run.has_slots() && (run.asked.mesh.tensor == 1 || !run.asked.mesh.async_tensor)) return run;
  RunConfig one = run.settled();
  MeshConfig& mesh = one.mesh;
  mesh.async_tensor = false;
  if (!run.has_slots()) return resolve(one, target);
  mesh.pipe = mesh.data = mesh.interleave = 1;
  mesh.schedule = MeshConfig().schedule;
  mesh.zero = 0;
  return resolve(one, target);
}

class Tuner {
 public:
  Tuner(const ResolvedRun& run, Platform platform, Backend& backend, Measure measure)
      : run_(run), platform_(std::move(platform)), backend_(backend), kernels_(*backend.tuning()), measure_(measure),
        meter_(backend) {
    run_.compile.memory_budget_gib = 0;  // recomputing must not change a bit either
    chosen_for_ = chosen_for(run_, platform_.target);
    tuning().slow_forms.clear();
  }

  Platform run(const TuningRecord& kept) {
    TuningRecord known = kept;
    known.merge(load_tuning(tuning().measurements));
    tuning().measured_seconds.insert(known.seconds.begin(), known.seconds.end());
    size_t measured = tuning().measured_seconds.size();
    best_ = compile(chosen_for_, {});
    expect(best_);
    tuning().tuned_for = name_of(best_.programs);
    auto chosen = known.slow_forms.find(tuning().tuned_for);
    bool is_new = chosen == known.slow_forms.end();
    if (is_new) {
      prepare();
      choose();
    }
    tuning().slow_forms = is_new ? best_.refused : chosen->second;
    Form form = compile(run_, tuning().slow_forms);
    expect(form);
    if (is_new) compile_ahead(form.programs);
    if (measure_ == Measure::kAll) measure_all(form);
    if (is_new || tuning().measured_seconds.size() > measured)
      save_tuning(tuning().measurements, {tuning().measured_seconds, {{tuning().tuned_for, tuning().slow_forms}}});
    backend_.end_compiling();
    return std::move(platform_);
  }

 private:
  struct NodeAt {
    size_t program;
    int node;
  };

  // A way to compute the step: the programs of all stages.
  struct Form {
    std::vector<CompiledGraph> programs;
    std::vector<int64_t> runs;                // of each, in a step
    std::vector<std::string> groups;          // its matmul groups
    std::map<std::string, NodeAt> libraries;  // see library_kernels
    std::map<std::string, NodeAt> kernels;    // all that one rank runs alone
    std::set<std::set<std::string>> float8;   // its products of eight bits (float8_key), and those of one operand
    std::set<std::string> refused;            // groups that it does without
  };

  Tuning& tuning() { return platform_.tuning; }

  Form compile(const ResolvedRun& run, const std::set<std::string>& refused) {
    Platform trial = platform_;
    trial.tuning.slow_forms = refused;
    Form form;
    form.refused = refused;
    CompiledRun compiled = compile_run(run, trial);
    for (CompiledStep& stage : compiled.stages)
      for (size_t p = 0; p < stage.programs.size(); ++p) {
        form.runs.push_back(stage.runs_of(p));
        form.programs.push_back(std::move(stage.programs[p]));
      }
    for (size_t p = 0; p < form.programs.size(); ++p) {
      const Plan& plan = form.programs[p].plan;
      add_matmul_groups(plan, form.groups);
      for (const auto& [key, node] : library_kernels(plan)) form.libraries.try_emplace(key, NodeAt{p, node});
      if (run.compile.precision == Precision::kFp8) add_float8(form, p);
    }
    return form;
  }

  void add_float8(Form& form, size_t p) const {
    const Graph& graph = form.programs[p].plan.graph;
    std::map<ValueId, std::set<std::string>> readers;
    for (const Launch& launch : form.programs[p].plan.launches) {
      const Node& node = graph.nodes()[size_t(launch.node)];
      if (!is_of_ranks(node)) form.kernels.try_emplace(kernel_key(graph, node), NodeAt{p, launch.node});
      if (!has_float8_operand(graph, node)) continue;
      std::optional<std::string> key = float8_key(graph, node);
      if (!key) continue;
      form.float8.insert({*key});
      for (ValueId input : node.inputs)
        if (is_made_for_products(graph, input)) readers[input].insert(*key);
    }
    for (auto& [value, keys] : readers) form.float8.insert(std::move(keys));
  }

  // In eight bits, by a kernel that makes nothing else.
  static bool is_made_for_products(const Graph& graph, ValueId value) {
    int maker = graph.producer(value);
    if (maker < 0) return false;
    const ValueIds& made = graph.nodes()[size_t(maker)].outputs;
    return std::all_of(made.begin(), made.end(), [&](ValueId one) { return dtype_bytes(graph.dtype(one)) == 1; });
  }

  // Before anything of the form is measured.
  void expect(const Form& form) {
    for (const CompiledGraph& program : form.programs) {
      const Plan& plan = program.plan;
      std::vector<double> seconds(plan.graph.nodes().size());
      for (const Launch& launch : plan.launches) seconds[size_t(launch.node)] = launch.seconds;
      kernels_.expect(plan.graph, seconds);
    }
  }

  // Products and attention come first, also those that only a trial has: they take longest to compile, and the compiler
  // reads one source at a time.
  void prepare() {
    for (const auto& [key, at] : best_.libraries) compile_ahead(best_, at);
    prepare_formats();
    prepare_groups({});
    compile_ahead(best_.programs);
  }

  void choose() {
    std::set<std::string> tried;
    choose_formats();
    prepare_groups(tried);
    for (size_t i = 0; i < best_.groups.size();)
      if (std::string group = best_.groups[i]; tried.insert(group).second && try_without(group)) {
        prepare_groups(tried);
        i = 0;  // another plan, with simpler groups perhaps
      } else {
        ++i;
      }
    trials_.clear();
  }

  static std::set<std::string> with(std::set<std::string> refused, const std::set<std::string>& more) {
    refused.insert(more.begin(), more.end());
    return refused;
  }

  // A trial needs kernels that nothing else has. Those of all trials of a plan are compiled beside each other, and
  // beside the step's own, instead of one after the other when they are measured.
  const Form& prepare_trial(const std::set<std::string>& refused, std::map<std::string, NodeAt> Form::*kernels) {
    auto [trial, fresh] = trials_.try_emplace(refused);
    if (!fresh) return trial->second;
    trial->second = compile(chosen_for_, refused);
    for (const auto& [key, at] : trial->second.*kernels)
      if (!(best_.*kernels).contains(key)) compile_ahead(trial->second, at);
    return trial->second;
  }
  Form take_trial(const std::set<std::string>& refused, std::map<std::string, NodeAt> Form::*kernels) {
    prepare_trial(refused, kernels);
    Form trial = std::move(trials_.extract(refused).mapped());
    expect(trial);
    return trial;
  }

  void prepare_formats() {
    for (const std::set<std::string>& products : best_.float8)
      prepare_trial(with(best_.refused, products), &Form::kernels);
  }

  // Products keep eight bits where they save more than all kernels that they cause take, each alone and all that read
  // one cast. When some are left out, others may have a cast for themselves.
  void choose_formats() {
    for (auto products = best_.float8.begin(); products != best_.float8.end();)
      if (try_in_16_bits(*products)) {
        prepare_formats();
        products = best_.float8.begin();  // another plan
      } else {
        ++products;
      }
  }

  bool try_in_16_bits(const std::set<std::string>& products) {
    Form trial = take_trial(with(best_.refused, products), &Form::kernels);
    measure_differences(trial, &Form::kernels);
    if (seconds(trial) >= kGain * seconds(best_)) return false;
    best_ = std::move(trial);
    return true;
  }

  void prepare_groups(const std::set<std::string>& tried) {
    for (const std::string& group : best_.groups) {
      if (tried.contains(group)) continue;
      std::set<std::string> refused = best_.refused;
      for (std::vector<std::string> more{group}; !more.empty();) {
        refused.insert(more.begin(), more.end());
        more = new_groups(prepare_trial(refused, &Form::libraries));
      }
    }
  }

  std::vector<std::string> new_groups(const Form& trial) const {
    std::vector<std::string> groups;
    for (const std::string& key : trial.groups)
      if (std::find(best_.groups.begin(), best_.groups.end(), key) == best_.groups.end()) groups.push_back(key);
    return groups;
  }

  // Without the group its matmul becomes a simpler one or a plain one; goes on to the plain one where that is no gain.
  bool try_without(const std::string& group) {
    std::set<std::string> refused = best_.refused;
    for (std::vector<std::string> more{group}; !more.empty();) {
      refused.insert(more.begin(), more.end());
      Form trial = take_trial(refused, &Form::libraries);
      measure_differences(trial, &Form::libraries);
      more = new_groups(trial);
      if (seconds(trial) >= kGain * seconds(best_)) continue;
      best_ = std::move(trial);
      compile_ahead(best_.programs);
      return true;
    }
    return false;
  }

  double seconds(const Form& form) const {
    double sum = 0;
    for (size_t p = 0; p < form.programs.size(); ++p) {
      const Plan& plan = form.programs[p].plan;
      for (const Launch& launch : plan.launches)
        sum += double(form.runs[p]) * price(plan.graph, plan.graph.nodes()[size_t(launch.node)], platform_).seconds;
    }
    return sum;
  }

  // What both have costs the same in both.
  void measure_differences(const Form& trial, std::map<std::string, NodeAt> Form::*kernels) {
    for (const auto& [key, at] : best_.*kernels)
      if (!(trial.*kernels).contains(key)) measure(best_, key, at);
    for (const auto& [key, at] : trial.*kernels)
      if (!(best_.*kernels).contains(key)) measure(trial, key, at);
  }

  void measure_all(const Form& form) {
    for (const auto& [key, at] : form.libraries) measure(form, key, at);
  }

  void measure(const Form& form, const std::string& key, NodeAt at) {
    auto [seconds, fresh] = tuning().measured_seconds.try_emplace(key, 0.0);
    const Graph& graph = form.programs[at.program].plan.graph;
    if (fresh) seconds->second = meter_.seconds(graph, graph.nodes()[size_t(at.node)]);
  }

  // What a backend does in the background for kernels that it is asked for goes on while others are measured.
  void compile_ahead(const std::vector<CompiledGraph>& programs) {
    for (const CompiledGraph& program : programs)
      for (const Launch& launch : program.plan.launches) compile_ahead(program, launch.node);
  }
  void compile_ahead(const Form& form, NodeAt at) { compile_ahead(form.programs[at.program], at.node); }
  void compile_ahead(const CompiledGraph& program, int node) {
    KernelNode kernel = kernel_node(program.plan.graph, program.plan.graph.nodes()[size_t(node)]);
    if (compiled_.insert(kernel_key(kernel.graph, kernel.node)).second)
      kernels_.compile_ahead(kernel.graph, kernel.node);
  }

  ResolvedRun run_;
  Platform platform_;
  Backend& backend_;
  KernelTuning& kernels_;
  Measure measure_;
  NodeMeter meter_;
  ResolvedRun chosen_for_;
  Form best_;
  std::map<std::set<std::string>, Form> trials_;  // prepared, by what they do without
  std::set<std::string> compiled_;
};

// What run_choices has of a run; empty when it is of another machine.
struct KeptChoices {
  TuningRecord tuning;
  std::string backend;
};

std::optional<KeptChoices> read_choices(std::string_view kept, const Tuning& tuning) {
  try {
    json file = parse_json(kept);
    if (file.at("machine") != tuning.machine) return std::nullopt;
    return KeptChoices{parse_tuning(file.at("tuning").dump()), file.at("backend").get<std::string>()};
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

bool has_chosen(const Tuning& tuning, Backend& backend) { return backend.tuning() && !tuning.tuned_for.empty(); }

TuningRecord chosen_now(const Tuning& tuning) { return {{}, {{tuning.tuned_for, tuning.slow_forms}}}; }

std::string print_choices(const TuningRecord& record, const Tuning& tuning, Backend& backend) {
  json file = {{"machine", tuning.machine},
               {"tuning", parse_json(print_tuning(record))},
               {"backend", backend.tuning()->choices()}};
  return file.dump(1) + "\n";
}

}  // namespace

Platform tune(const ResolvedRun& run, Platform platform, Backend& backend, Measure measure, std::string_view kept) {
  if (!backend.tuning()) return platform;
  if (int64_t free = backend.free_bytes(); free > 0) require_fits(compile_run(run, platform).fullest(), platform, free);
  TuningRecord record;
  if (std::optional<KeptChoices> choices = read_choices(kept, platform.tuning)) record = choices->tuning;
  return Tuner(run, std::move(platform), backend, measure).run(record);
}

void choose_for_other_stages(std::span<const CompiledStep> stages, int64_t stage, Backend& backend) {
  if (!backend.tuning() || stages.size() == 1) return;
  std::set<std::string> known;
  auto visit = [&](const CompiledStep& step, bool chooses) {
    for (const CompiledGraph& program : step.programs)
      for (const auto& [key, n] : library_kernels(program.plan)) {
        if (!known.insert(key).second || !chooses) continue;
        KernelNode kernel = kernel_node(program.plan.graph, program.plan.graph.nodes()[size_t(n)]);
        Graph single = single_node(kernel.graph, kernel.node);
        backend.compile(single, single.nodes()[0]);
      }
  };
  visit(stages[size_t(stage)], false);
  for (const CompiledStep& other : stages) visit(other, true);
  backend.end_compiling();
}

std::string run_choices(const Tuning& tuning, Backend& backend, bool seconds) {
  if (!has_chosen(tuning, backend)) return {};
  TuningRecord record = chosen_now(tuning);
  if (seconds) record.seconds = tuning.measured_seconds;
  return print_choices(record, tuning, backend);
}

std::string add_choices(std::string_view kept, const Tuning& tuning, Backend& backend) {
  if (!has_chosen(tuning, backend)) return {};
  TuningRecord record = chosen_now(tuning);
  if (std::optional<KeptChoices> choices = read_choices(kept, tuning)) record.merge(choices->tuning);
  return print_choices(record, tuning, backend);
}

bool adopt_choices(std::string_view kept, const Tuning& tuning, Backend& backend) {
  std::optional<KeptChoices> choices = read_choices(kept, tuning);
  return choices && backend.tuning() && backend.tuning()->adopt_choices(choices->backend);
}

bool take_choices(std::string_view chosen, Tuning& tuning, Backend& backend) {
  if (!adopt_choices(chosen, tuning, backend)) return false;
  TuningRecord record = read_choices(chosen, tuning)->tuning;
  TOKAMAK_CHECK(record.slow_forms.size() == 1, "choices are of one step");
  std::tie(tuning.tuned_for, tuning.slow_forms) = *record.slow_forms.begin();
  tuning.measured_seconds = std::move(record.seconds);
  return true;
}

}  // namespace tokamak
