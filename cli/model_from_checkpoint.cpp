#include "cli/model_from_checkpoint.h"

#include <fmt/core.h>

#include "cli/streams.h"
#include "config/json.h"

namespace tokamak {

OpenedModel open_model(const std::string& path) {
  std::vector<std::string> warnings;
  OpenedModel model;
  model.checkpoint = open_checkpoint(path, &warnings);
  for (const std::string& warning : warnings) print_to_stderr(fmt::format("warning: {}\n", warning));
  model.config = run_config_from_json(model.checkpoint.state.config_json, model.checkpoint.path.string());
  // A model that is used is on one device, however it was trained; train.batch means what slots say.
  model.config.mesh = {.slots = model.config.mesh.slots};
  return model;
}

}  // namespace tokamak
