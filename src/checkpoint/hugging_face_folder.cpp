#include "checkpoint/hugging_face_folder.h"

#include "base/error.h"
#include "base/json.h"
#include "base/path_links.h"
#include "checkpoint/checkpoint_tensors.h"
#include "config/config.h"
#include "config/json.h"
#include "model/hugging_face.h"
#include "model/model.h"

#include <nlohmann/json.hpp>

#include <set>

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* kConfigFile = "config.json";

json read_object(const fs::path& path) {
  std::string text = read_file(path, kLargeFile);
  json object = parse_json(text);
  if (!object.is_object())
    user_error("[checkpoint] {}: expected a JSON object, got something else{}; copy the file again", path.string(),
               json_error(text));
  return object;
}

constexpr const char* kConvert =
    "in Python, AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(OTHER, safe_serialization=True) writes it "
    "as safetensors";

// What PyTorch pickles may run any code as it is read.
[[noreturn]] void refuse_without_tensors(const fs::path& folder) {
  for (const char* pickled : {"pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model.pt", "model.pt"})
    if (is_named(folder / pickled))
      user_error("[checkpoint] {}: expected model.safetensors, got {}, which PyTorch alone can read; {}",
                 folder.string(), pickled, kConvert);
  user_error("[checkpoint] {}: expected {} or {}, got neither; copy all files of the model", folder.string(),
             kModelFile, kTensorIndexFile);
}

// The index gives each tensor's file; which tensors are in a file is told by the file itself.
std::set<std::string> indexed_files(const fs::path& index) {
  json object = read_object(index);
  const json& map = object["weight_map"];
  std::set<std::string> names;
  if (map.is_object())
    for (const auto& [tensor, file] : map.items()) names.insert(file.is_string() ? file.get<std::string>() : "");
  if (names.empty())
    user_error("[checkpoint] {}: expected weight_map to name the file of each tensor, got none; copy the file again",
               index.string());
  for (const std::string& name : names)
    if (name.empty() || name == "." || name == ".." || name.find('\0') != name.npos ||
        fs::path(name).filename() != name || !name.ends_with(".safetensors"))
      user_error(
          "[checkpoint] {}: expected names of safetensors files beside it in weight_map, got '{}'; do not trust it",
          index.string(), name);
  names.erase(kZerosFile);
  return names;
}

std::set<std::string> tensor_files(const fs::path& folder) {
  if (is_named(folder / kModelFile)) return {kModelFile};
  if (is_named(folder / kTensorIndexFile)) return indexed_files(folder / kTensorIndexFile);
  refuse_without_tensors(folder);
}

}  // namespace

std::optional<FoundCheckpoint> open_hugging_face(const fs::path& folder) {
  fs::path file = folder / kConfigFile;
  if (!is_named(file)) return std::nullopt;
  json config = read_object(file);
  if (!config.contains("model_type")) return std::nullopt;
  std::string where = "[checkpoint] " + file.string();
  RunConfig run;
  const HuggingFaceForm* form = family_of_config(config, where).hugging_face;
  run.model = form->read_config(config, where);
  FoundCheckpoint found{folder, {}};
  found.parameter_name = [form, model = run.model](std::string_view tensor) {
    return form->parameter_name(tensor, model);
  };
  found.state.config_json = to_json(run);
  for (const std::string& name : tensor_files(folder))
    found.files[name] = std::make_shared<const CheckpointFile>(folder / name);
  return found;
}

void refuse_file_of_model(const fs::path& file) {
  std::error_code absent;
  if (!fs::is_regular_file(file, absent)) return;
  std::string extension = file.extension().string();
  bool is_pickled = extension == ".bin" || extension == ".pt" || extension == ".pth" || extension == ".ckpt";
  user_error(
      "[checkpoint] {}: expected the folder of a checkpoint, a run or a model, got a file{}; {}name the folder with {} "
      "and {} in it",
      file.string(), is_pickled ? " as PyTorch writes them, which it alone can read" : "",
      is_pickled ? std::string(kConvert) + "; then " : "", kConfigFile, kModelFile);
}

}  // namespace tokamak
