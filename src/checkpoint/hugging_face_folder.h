// A model in Hugging Face's form: a folder with config.json and model.safetensors, or several files of tensors that
// model.safetensors.index.json names. Tests: tests/checkpoint/hugging_face_test.cpp, tests/errors.
#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "data/tokenizer.h"
#include "graph/type.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

struct ModelConfig;

/// Opened as a checkpoint before any step: config_json is that of a run with this model, nothing else is known. Nothing
/// when the folder has no config.json with a model_type. UserErrors: a type or a setting that no model here has, files
/// that are absent, a name in the index that leads out of the folder, weights in PyTorch's own files (.bin, .pt) alone.
std::optional<FoundCheckpoint> open_hugging_face(const std::filesystem::path& folder);

/// UserError where a single file was named instead of the folder, with what to do about it.
void refuse_file_of_model(const std::filesystem::path& file);

/// What others read beside the tensors, by file name: config.json, generation_config.json, with a tokenizer
/// tokenizer.json and tokenizer_config.json, and where the model lacks biases that others' has, kZerosFile with these.
/// Empty for a family that Transformers does not have. `dtype`: the tensors'.
std::map<std::string, std::string> hugging_face_files(const ModelConfig& model, const Tokenizer* tokenizer,
                                                      DType dtype = DType::kF32);

/// Those, and the index of model.safetensors, for a checkpoint of ours: by the index vLLM, which else reads all
/// safetensors files of a folder as weights, leaves optimizer.safetensors alone.
std::map<std::string, std::string> checkpoint_files_for_others(const ModelConfig& model, const Tokenizer* tokenizer);

/// The file that names the file of each tensor.
inline constexpr const char* kTensorIndexFile = "model.safetensors.index.json";

/// Transformers takes tensors that it does not find for zeros, vLLM refuses the model; here nothing reads the file.
inline constexpr const char* kZerosFile = "model-zeros.safetensors";

struct TensorFile {
  std::string name;
  std::vector<NamedType> tensors;
};
/// The text of the index: of these files of the model, and of kZerosFile where hugging_face_files() has it.
std::string format_tensor_index(const ModelConfig& model, std::vector<TensorFile> files);

}  // namespace tokamak
