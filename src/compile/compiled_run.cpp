#include "compile/compiled_run.h"

#include "compile/pipe_compiler.h"
#include "compile/step_compiler.h"

#include <algorithm>
#include <map>

namespace tokamak {

double CompiledRun::exposed_seconds() const { return seconds - stages[0].seconds() + stages[0].exposed_seconds(); }

const CompiledStep& CompiledRun::fullest() const {
  return *std::max_element(stages.begin(), stages.end(), [](const CompiledStep& a, const CompiledStep& b) {
    return a.total_bytes() < b.total_bytes();
  });
}

CompiledRun compile_run(const ResolvedRun& run, const Platform& platform) {
  CompiledRun out;
  if (run.stages() == 1) {
    out.stages.push_back(compile_step(run, platform));
    out.seconds = out.stages[0].seconds();
    return out;
  }
  CompiledPipeline pipeline = compile_pipeline(run, platform);
  out.seconds = pipeline.seconds();
  out.stages = std::move(pipeline.stages);
  out.first_block = std::move(pipeline.first_block);
  return out;
}

int64_t batches_at_once(const ResolvedRun& run) { return run.stages() > 1 ? run.micro_batches : 1; }

std::vector<CompiledStep> compile_loss(const ResolvedRun& run, const Platform& platform,
                                       const std::vector<int64_t>& first_block) {
  if (run.stages() > 1) return compile_pipeline_loss(run, platform, first_block);
  std::vector<CompiledStep> steps(1);
  steps[0].resolved = run;
  steps[0].runs = {{0, 0}};
  steps[0].programs.push_back(compile_evaluation(run, platform));
  return steps;
}

std::vector<StoredTensor> kept_tensors(const CompiledRun& run) {
  std::vector<StoredTensor> tensors;
  std::map<std::string_view, size_t> known;
  for (int64_t stage = 0; stage < int64_t(run.stages.size()); ++stage)
    for (const CompiledGraph& program : run.stages[size_t(stage)].programs)
      for (const Argument& a : program.plan.graph.arguments()) {
        if (a.kind == Argument::Kind::kInput || is_scratch(a.spec.role)) continue;
        auto [at, is_new] = known.try_emplace(a.name, tensors.size());
        if (is_new) tensors.push_back({a.name, program.plan.graph.type(a.value), a.spec});
        std::vector<int64_t>& stages = tensors[at->second].stages;
        if (stages.empty() || stages.back() != stage) stages.push_back(stage);
      }
  std::map<std::string_view, size_t> order;
  for (const Argument& a : run.stages[0].forward.arguments()) order.try_emplace(a.name, order.size());
  auto place = [&](const StoredTensor& tensor) {
    auto at = order.find(tensor.name);
    return at == order.end() ? order.size() : at->second;
  };
  std::stable_sort(tensors.begin(), tensors.end(),
                   [&](const StoredTensor& a, const StoredTensor& b) { return place(a) < place(b); });
  return tensors;
}

}  // namespace tokamak
