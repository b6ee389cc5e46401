#include "checkpoint/model_tensors.h"

#include "base/error.h"
#include "checkpoint/checkpoint_tensors.h"

#include <set>

namespace tokamak {
namespace {

constexpr const char *kOwnRemedy =
                         "the checkpoint is of another model: set model.* as in its state.json, or start a new "
                         "run with another train.out",
                     *kOtherRemedy = "these are not the tensors of its config.json: copy all files of the model again";

}  // namespace

ModelTensors::ModelTensors(const FoundCheckpoint& checkpoint)
    : folder_(checkpoint.path.string()), remedy_(checkpoint.parameter_name ? kOtherRemedy : kOwnRemedy) {
  for (const auto& [name, file] : checkpoint.files) {
    if (name == kOptimizerFile) continue;
    files_.push_back(file);
    const SafetensorsReader& reader = *readers_.emplace_back(std::make_unique<SafetensorsReader>(file));
    for (const std::string& tensor : reader.names()) {
      std::string parameter = checkpoint.parameter_name ? checkpoint.parameter_name(tensor) : tensor;
      if (parameter.empty()) continue;
      auto [at, is_new] = found_.emplace(parameter, StoredParameter{&reader, tensor});
      if (!is_new)
        user_error("[checkpoint] {}: expected '{}' once, got it as '{}' and '{}'; the files are of two models", folder_,
                   parameter, at->second.tensor, tensor);
    }
  }
}

void ModelTensors::require(const std::vector<NamedType>& parameters) const {
  std::set<std::string> left;
  for (const auto& [name, stored] : found_) left.insert(name);
  for (const auto& [name, type] : parameters) {
    if (left.erase(name) == 0)
      user_error("[checkpoint] {}: expected '{}' as {}, got no such tensor; {}",
                 files_.size() == 1 ? files_[0]->path().string() : folder_, name, to_string(type), remedy_);
    ValueType got = this->type(name);
    if (got.shape != type.shape || !is_float(got.dtype))
      user_error("[checkpoint] {}: expected '{}' as {}, got {}; {}", where(name), name, to_string(type), to_string(got),
                 remedy_);
  }
  if (!left.empty())
    user_error("[checkpoint] {}: expected {} tensors, got also '{}' as {}; {}", where(*left.begin()), parameters.size(),
               *left.begin(), to_string(type(*left.begin())), remedy_);
}

std::vector<std::string> ModelTensors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, stored] : found_) names.push_back(name);
  return names;
}

ValueType ModelTensors::type(const std::string& parameter) const {
  const StoredParameter& stored = find(parameter);
  return stored.reader->type(stored.tensor);
}

std::span<const std::byte> ModelTensors::bytes(const std::string& parameter) const {
  const StoredParameter& stored = find(parameter);
  return stored.reader->bytes(stored.tensor);
}

const CheckpointFile& ModelTensors::file_of(const std::string& parameter) const {
  size_t i = 0;
  while (readers_[i].get() != find(parameter).reader) ++i;
  return *files_[i];
}

void ModelTensors::release(const std::string& parameter, std::span<const std::byte> bytes) const {
  file_of(parameter).release(bytes);
}

std::string ModelTensors::where(const std::string& parameter) const { return find(parameter).reader->path().string(); }

}  // namespace tokamak
