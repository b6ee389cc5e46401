// A model in Hugging Face's form: a folder with config.json and model.safetensors, or several files of tensors that
// model.safetensors.index.json names. Tests: tests/checkpoint/hugging_face_test.cpp, tests/errors.
#pragma once

#include "checkpoint/checkpoint.h"

#include <filesystem>
#include <optional>
#include <string>

namespace tokamak {

/// Opened as a checkpoint before any step: config_json is that of a run with this model, nothing else is known. Nothing
/// when the folder has no config.json with a model_type. UserErrors: a type or a setting that no model here has, files
/// that are absent, a name in the index that leads out of the folder, weights in PyTorch's own files (.bin, .pt) alone.
std::optional<FoundCheckpoint> open_hugging_face(const std::filesystem::path& folder);

/// UserError where a single file was named instead of the folder, with what to do about it.
void refuse_file_of_model(const std::filesystem::path& file);

/// The file that names the file of each tensor.
inline constexpr const char* kTensorIndexFile = "model.safetensors.index.json";

/// Transformers takes tensors that it does not find for zeros, vLLM refuses the model; here nothing reads the file.
inline constexpr const char* kZerosFile = "model-zeros.safetensors";

}  // namespace tokamak
