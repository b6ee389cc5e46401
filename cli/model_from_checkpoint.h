// What generate and eval share: a checkpoint opened, with the configuration that it was trained with, on one device or
// divided over several.
#pragma once

#include "checkpoint/averaged_weights.h"
#include "checkpoint/checkpoint.h"
#include "cli/ranks.h"
#include "config/field.h"

namespace tokamak {

struct OpenedModel {
  FoundCheckpoint checkpoint;
  RunConfig config;  // of the run that made it, with the mesh and the precision that it is used with
};

struct ModelMesh {
  int64_t tensor = 1;
};
void visit(FieldList& v, ModelMesh& c);

struct ModelCompute {
  std::string precision = "run";
};
void visit(FieldList& v, ModelCompute& c);

/// `path`: a run folder (its newest good checkpoint) or a checkpoint's own; `weights` as with_weights has them.
/// Warnings go to standard error.
OpenedModel open_model(const std::string& path, const std::string& weights, const ModelMesh& mesh,
                       const ModelCompute& compute);

/// Runs `work` on the ranks of config.mesh, with a platform by which passes choose the same on all of them.
void use_model(const RunConfig& config, const std::function<void(const RankContext&, const Platform&)>& work);

}  // namespace tokamak
