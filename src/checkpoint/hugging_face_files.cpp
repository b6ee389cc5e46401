#include "checkpoint/hugging_face_files.h"

#include "base/json.h"
#include "checkpoint/checkpoint_tensors.h"
#include "checkpoint/hugging_face_folder.h"
#include "checkpoint/model_types.h"
#include "config/config.h"
#include "data/hugging_face_vocabulary.h"
#include "model/hugging_face.h"
#include "model/model.h"

#include <nlohmann/json.hpp>

#include <set>

namespace tokamak {

using nlohmann::ordered_json;

namespace {

// Of others' model those that ours lacks.
std::vector<NamedType> absent_tensors(const ModelConfig& model) {
  std::vector<NamedType> absent;
  const HuggingFaceForm* form = family_of(model).hugging_face;
  if (!form || !form->with_all_tensors) return absent;
  std::set<std::string> own;
  for (const NamedType& tensor : model_types(model)) own.insert(tensor.name);
  for (const NamedType& tensor : model_types(form->with_all_tensors(model)))
    if (!own.contains(tensor.name)) absent.push_back(tensor);
  return absent;
}

std::string file_of_zeros(const std::vector<NamedType>& tensors) {
  SafetensorsLayout layout = safetensors_layout(tensors, model_metadata());
  layout.header.resize(size_t(layout.bytes));
  return layout.header;
}

const char* torch_name(DType dtype) {
  return dtype == DType::kBF16 ? "bfloat16" : dtype == DType::kF16 ? "float16" : "float32";
}

}  // namespace

std::map<std::string, std::string> hugging_face_files(const ModelConfig& model, const Tokenizer* tokenizer,
                                                      DType dtype) {
  const HuggingFaceForm* form = family_of(model).hugging_face;
  if (!form) return {};
  bool has_end = tokenizer && tokenizer->has_end_of_text();
  ordered_json end = has_end ? ordered_json(tokenizer->end_of_text()) : ordered_json(nullptr);
  ordered_json config = form->write_config(model), generation = ordered_json::object();
  config["dtype"] = config["torch_dtype"] = torch_name(dtype);  // by version of Transformers
  for (ordered_json* file : {&config, &generation}) (*file)["bos_token_id"] = (*file)["eos_token_id"] = end;
  std::map<std::string, std::string> files = {{"config.json", format_json(config, 2) + "\n"},
                                              {"generation_config.json", format_json(generation, 2) + "\n"}};
  if (std::vector<NamedType> absent = absent_tensors(model); !absent.empty()) files[kZerosFile] = file_of_zeros(absent);
  if (!tokenizer) return files;
  ordered_json settings = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                           {"model_max_length", model.context},
                           {"clean_up_tokenization_spaces", false}};
  if (has_end)
    settings["bos_token"] = settings["eos_token"] = tokenizer->vocabulary().tokens[size_t(tokenizer->end_of_text())];
  files["tokenizer.json"] = format_hugging_face_vocabulary(tokenizer->vocabulary());
  files["tokenizer_config.json"] = format_json(settings, 2) + "\n";
  return files;
}

std::map<std::string, std::string> checkpoint_files_for_others(const ModelConfig& model, const Tokenizer* tokenizer) {
  std::map<std::string, std::string> files = hugging_face_files(model, tokenizer);
  if (!files.empty()) files[kTensorIndexFile] = format_tensor_index(model, {{kModelFile, model_types(model)}});
  return files;
}

std::string format_tensor_index(const ModelConfig& model, std::vector<TensorFile> files) {
  files.push_back({kZerosFile, absent_tensors(model)});
  int64_t parameters = 0, bytes = 0;
  ordered_json map = ordered_json::object();
  for (const TensorFile& file : files)
    for (const NamedType& tensor : file.tensors) {
      map[tensor.name] = file.name;
      parameters += num_elements(tensor.type.shape);
      bytes += num_bytes(tensor.type);
    }
  ordered_json index = {{"metadata", {{"total_parameters", parameters}, {"total_size", bytes}}}, {"weight_map", map}};
  return format_json(index, 2) + "\n";
}

}  // namespace tokamak
