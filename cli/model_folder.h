// What export and import share: a model written as a folder by itself.
#pragma once

#include "checkpoint/checkpoint.h"
#include "config/field.h"

namespace tokamak {

struct ModelFolderOptions {
  std::string type = "stored";
  int64_t shard_mib = 0;
  std::string vocab;
  bool replace = false;
};
void visit(FieldList& v, ModelFolderOptions& c);

/// Writes it, with progress, and says what was written. The tokenizer is that of the checkpoint's folder or run.
/// Returns the exit status: a signal ends it early.
int write_model_folder(const FoundCheckpoint& checkpoint, const std::string& folder, const ModelFolderOptions& options);

}  // namespace tokamak
