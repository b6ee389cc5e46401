#include "tune/tune.h"

#include "backend/kernel_tuning.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/json.h"
#include "compile/compiled_run.h"
#include "compile/memory_advice.h"
#include "exec/measure.h"
#include "graph/single_node.h"
#include "graph/text.h"
#include "ops/row_block.h"
#include "tune/step_forms.h"
#include "tune/tuning_record.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <tuple>

namespace tokamak {
namespace {

using nlohmann::json;

constexpr double kGain = 1 - 1e-6;  // less is the rounding of a sum

std::string name_of(const std::vector<CompiledGraph>& programs) {
  std::string text;
  for (const CompiledGraph& program : programs) text += print(program.plan.graph);
  return format_checksum(checksum(std::as_bytes(std::span(text))));
}

class Tuner {
 public:
  Tuner(const ResolvedRun& run, Platform platform, Backend& backend, Measure measure)
      : platform_(std::move(platform)), kernels_(*backend.tuning()), backend_(backend), measure_(measure),
        meter_(backend), forms_(run, platform_, kernels_) {
    tuning().slow_forms.clear();
  }

  Platform run(const TuningRecord& kept) {
    TuningRecord known = kept;
    known.merge(load_tuning(tuning().measurements));
    tuning().measured_seconds.insert(known.seconds.begin(), known.seconds.end());
    size_t measured = tuning().measured_seconds.size();
    best_ = forms_.compile_chosen({});
    expect(best_);
    tuning().tuned_for = name_of(best_.programs);
    auto chosen = known.slow_forms.find(tuning().tuned_for);
    bool is_new = chosen == known.slow_forms.end();
    if (is_new) {
      forms_.prepare(best_);
      choose();
    }
    tuning().slow_forms = is_new ? best_.refused : chosen->second;
    StepForm form = forms_.compile(tuning().slow_forms);
    expect(form);
    if (is_new) forms_.compile_ahead(form);
    if (measure_ == Measure::kAll) measure_all(form);
    if (is_new || tuning().measured_seconds.size() > measured)
      save_tuning(tuning().measurements, {tuning().measured_seconds, {{tuning().tuned_for, tuning().slow_forms}}});
    backend_.end_compiling();
    return std::move(platform_);
  }

 private:
  Tuning& tuning() { return platform_.tuning; }

  // Before anything of the form is measured.
  void expect(const StepForm& form) {
    for (const CompiledGraph& program : form.programs) {
      const Plan& plan = program.plan;
      std::vector<double> seconds(plan.graph.nodes().size());
      for (const Launch& launch : plan.launches) seconds[size_t(launch.node)] = launch.seconds;
      kernels_.expect(plan.graph, seconds);
    }
  }

  void choose() {
    std::set<std::string> tried;
    choose_formats();
    forms_.prepare_groups(best_, tried);
    for (size_t i = 0; i < best_.groups.size();)
      if (std::string group = best_.groups[i]; tried.insert(group).second && try_without(group)) {
        forms_.prepare_groups(best_, tried);
        i = 0;  // another plan, with simpler groups perhaps
      } else {
        ++i;
      }
    forms_.drop_trials();
  }

  // Products keep eight bits where they save more than all kernels that they cause take, each alone and all that read
  // one cast. When some are left out, others may have a cast for themselves.
  void choose_formats() {
    for (auto products = best_.float8.begin(); products != best_.float8.end();)
      if (try_in_16_bits(*products)) {
        forms_.prepare_formats(best_);
        products = best_.float8.begin();  // another plan
      } else {
        ++products;
      }
  }

  StepForm take_trial(const std::set<std::string>& refused, StepForm::Kernels StepForm::*kernels) {
    StepForm trial = forms_.take_trial(best_, refused, kernels);
    expect(trial);
    measure_differences(trial, kernels);
    return trial;
  }

  bool try_in_16_bits(const std::set<std::string>& products) {
    StepForm trial = take_trial(refuse_both(best_.refused, products), &StepForm::kernels);
    if (seconds(trial) >= kGain * seconds(best_)) return false;
    best_ = std::move(trial);
    return true;
  }

  // Without the group its matmul becomes a simpler one or a plain one; goes on to the plain one where that is no gain.
  bool try_without(const std::string& group) {
    std::set<std::string> refused = best_.refused;
    for (std::vector<std::string> more{group}; !more.empty();) {
      refused.insert(more.begin(), more.end());
      StepForm trial = take_trial(refused, &StepForm::libraries);
      more = new_groups(best_, trial);
      if (seconds(trial) >= kGain * seconds(best_)) continue;
      best_ = std::move(trial);
      forms_.compile_ahead(best_);
      return true;
    }
    return false;
  }

  double seconds(const StepForm& form) const {
    double sum = 0;
    for (size_t p = 0; p < form.programs.size(); ++p) {
      const Plan& plan = form.programs[p].plan;
      for (const Launch& launch : plan.launches)
        sum += double(form.runs[p]) * price(plan.graph, plan.graph.nodes()[size_t(launch.node)], platform_).seconds;
    }
    return sum;
  }

  // What both have costs the same in both.
  void measure_differences(const StepForm& trial, StepForm::Kernels StepForm::*kernels) {
    for (const auto& [key, at] : best_.*kernels)
      if (!(trial.*kernels).contains(key)) measure(best_, key, at);
    for (const auto& [key, at] : trial.*kernels)
      if (!(best_.*kernels).contains(key)) measure(trial, key, at);
  }

  void measure_all(const StepForm& form) {
    for (const auto& [key, at] : form.libraries) measure(form, key, at);
  }

  void measure(const StepForm& form, const std::string& key, StepForm::NodeAt at) {
    auto [seconds, fresh] = tuning().measured_seconds.try_emplace(key, 0.0);
    const Graph& graph = form.programs[at.program].plan.graph;
    if (fresh) seconds->second = meter_.seconds(graph, graph.nodes()[size_t(at.node)]);
  }

  Platform platform_;
  KernelTuning& kernels_;
  Backend& backend_;
  Measure measure_;
  NodeMeter meter_;
  StepForms forms_;
  StepForm best_;
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

void tune_ahead(const ResolvedRun& run, const Platform& expected, CodeAhead& code) {
  StepForms forms(run, expected, code);
  forms.prepare(forms.compile_chosen({}));
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
