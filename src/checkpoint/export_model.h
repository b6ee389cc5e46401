// A model as a folder by itself, in Hugging Face's form: what a run saved without what training alone needs, or another
// model with its names, types and tokenizer checked. Tests: tests/checkpoint/export_model_test.cpp.
#pragma once

#include "checkpoint/checkpoint.h"
#include "data/tokenizer.h"
#include "graph/type.h"

#include <functional>
#include <optional>

namespace tokamak {

struct ExportOptions {
  std::optional<DType> type;           // f32, bf16 or f16; nothing: each tensor as it is stored
  int64_t shard_bytes = 0;             // of tensors in a file at most, but for a tensor that is larger; 0: one file
  const Tokenizer* grow_to = nullptr;  // the model's tokenizer with added tokens, which the folder then has; null: none
  bool replace = false;                // a folder that has files of a model and nothing else
  std::function<void(int64_t done, int64_t total)> progress = [](int64_t, int64_t) {};  // bytes
  std::function<bool()> stop = [] { return false; };
};

struct ExportedModel {
  int64_t tensors = 0, parameters = 0, bytes = 0, files = 0;
  DType type = DType::kF32;  // the widest
};

/// Writes the folder: config.json, generation_config.json, model.safetensors or several files with their index, and
/// with a tokenizer (null: none) tokenizer.json and tokenizer_config.json. It appears whole, under its name, or not at
/// all. Tensors that keep their type keep their bytes; memory does not grow with them. With `grow_to` the tables have a
/// row for each new token, which begins as the mean of those of the model's tokens. UserErrors: a tokenizer to grow to
/// that is no extension of the model's, something is in the
/// folder, tensors that are not those of the model, numbers that are not finite or that `type` does not reach, more
/// tokens than the model has, `stop`, and the disk's.
ExportedModel export_model(const FoundCheckpoint& checkpoint, const Tokenizer* tokenizer,
                           const std::filesystem::path& folder, const ExportOptions& options);

}  // namespace tokamak
