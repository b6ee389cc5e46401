// What a run is made of, as plain structs, one header a section. Each struct has one visit() in config/visit.h's style,
// from which parsing, --help, printing and the documentation are derived; defaults are the initialisers.
#pragma once

#include "config/compile_config.h"
#include "config/data_config.h"
#include "config/mesh_config.h"
#include "config/model_config.h"
#include "config/optimizer_config.h"
#include "config/train_config.h"

#include <cstdint>
#include <string>

namespace tokamak {

struct RunConfig {
  ModelConfig model;
  DataConfig data;
  OptimizerConfig optimizer;
  TrainConfig train;
  CompileConfig compile;
  MeshConfig mesh;
  std::string device = "auto";  // auto, cpu, cuda or cuda:<number>; auto: the first GPU when there is one
  int64_t threads = 0;          // CPU threads; 0: all

  /// Of an optimizer step.
  int64_t step_tokens() const { return train.total_batch > 0 ? train.total_batch : train.batch * model.context; }
};

}  // namespace tokamak
