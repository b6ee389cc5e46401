// What generate and eval share: a checkpoint opened, with the configuration that it was trained with.
#pragma once

#include "cli/machine.h"
#include "config/config.h"
#include "train/checkpoint.h"

namespace tokamak {

struct OpenedModel {
  FoundCheckpoint checkpoint;
  RunConfig config;  // of the run that made it
};

/// `path`: a run folder (its newest good checkpoint) or a checkpoint's own. Warnings go to standard error.
OpenedModel open_model(const std::string& path);

}  // namespace tokamak
