// The files beside a model's tensors by which other programs open it: Transformers, vLLM, lm-eval-harness. Apart from
// what reads such folders (checkpoint/hugging_face_folder.h), which a fuzz test builds without the families. Tests:
// tests/checkpoint/hugging_face_test.cpp, tests/checkpoint/export_model_test.cpp.
#pragma once

#include "checkpoint/safetensors.h"
#include "data/tokenizer.h"
#include "graph/type.h"

#include <map>
#include <string>
#include <vector>

namespace tokamak {

struct ModelConfig;

/// What others read beside the tensors, by file name: config.json, generation_config.json, with a tokenizer
/// tokenizer.json and tokenizer_config.json, and where the model lacks biases that others' has, kZerosFile with these.
/// Empty for a family that Transformers does not have. `dtype`: the tensors'.
std::map<std::string, std::string> hugging_face_files(const ModelConfig& model, const Tokenizer* tokenizer,
                                                      DType dtype = DType::kF32);

/// Those, and the index of model.safetensors, for a checkpoint of ours: by the index vLLM, which else reads all
/// safetensors files of a folder as weights, leaves optimizer.safetensors alone.
std::map<std::string, std::string> checkpoint_files_for_others(const ModelConfig& model, const Tokenizer* tokenizer);

struct TensorFile {
  std::string name;
  std::vector<NamedType> tensors;
};
/// The text of the index: of these files of the model, and of kZerosFile where hugging_face_files() has it.
std::string format_tensor_index(const ModelConfig& model, std::vector<TensorFile> files);

}  // namespace tokamak
