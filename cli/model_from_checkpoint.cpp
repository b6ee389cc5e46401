#include "cli/model_from_checkpoint.h"

#include <fmt/core.h>

#include "cli/streams.h"
#include "config/json.h"
#include "run/rank_decisions.h"

namespace tokamak {

void visit(FieldList& v, ModelMesh& c) { v("tensor", c.tensor, "ranks that each matrix is divided over", at_least(1)); }

void visit(FieldList& v, ModelCompute& c) {
  std::vector<std::string> words{"run"};
  words.insert(words.end(), kPrecisionNames.begin(), kPrecisionNames.end());
  v("precision", c.precision, "number format of the matrix products; run: as the run has it", one_of(words));
}

OpenedModel open_model(const std::string& path, const std::string& weights, const ModelMesh& mesh,
                       const ModelCompute& compute) {
  std::vector<std::string> warnings;
  OpenedModel model;
  model.checkpoint = with_weights(open_checkpoint(path, &warnings), weights);
  for (const std::string& warning : warnings) print_warning(warning);
  model.config = run_config_from_json(model.checkpoint.state.config_json, model.checkpoint.path.string());
  // However it was trained; but train.batch means what slots say.
  model.config.mesh = {.data = 1, .tensor = mesh.tensor, .slots = model.config.mesh.slots};
  if (compute.precision != "run") model.config.compile.precision = parse_precision(compute.precision);
  return model;
}

void use_model(const RunConfig& config, const std::function<void(const RankContext&, const Platform&)>& work) {
  if (config.mesh.tensor == 1) {
    Machine machine = open_machine(config, CpuRates::kTypical);
    return work({config, machine, nullptr}, machine.platform);
  }
  run_on_ranks(config, [&](const RankContext& rank) {
    Platform platform = rank.machine.platform;
    platform.target = of_leader(rank.ranks, platform.target);
    work(rank, platform);
  });
}

}  // namespace tokamak
