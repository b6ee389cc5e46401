#include "checkpoint/averaged_weights.h"

#include "autodiff/optimizer.h"
#include "base/error.h"
#include "checkpoint/checkpoint_tensors.h"
#include "checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>

namespace tokamak {
namespace {

const std::string kAveragePrefix = std::string(kWeightAverage) + ".";

std::string averaged_parameter(std::string_view tensor) {
  return std::string(tensor.starts_with(kAveragePrefix) ? tensor.substr(kAveragePrefix.size()) : std::string_view());
}

float updates_of(const SafetensorsReader& reader) {
  float updates = 0;
  if (reader.contains("step") && reader.type("step") == ValueType{DType::kF32, {}})
    std::memcpy(&updates, reader.bytes("step").data(), sizeof updates);
  return updates;
}

}  // namespace

FoundCheckpoint with_weights(FoundCheckpoint checkpoint, std::string_view weights) {
  if (weights == kLastWeights) return checkpoint;
  const std::string path = checkpoint.path.string();
  constexpr const char* kExpected = "[weights] expected a mean of the weights over steps in {}, got {}; {}";
  constexpr const char* kRemedy = "train with --optimizer.ema=0.999, or use --weights=last";
  if (checkpoint.parameter_name || !std::filesystem::exists(checkpoint.path / kOptimizerFile))
    user_error(kExpected, path, "a model alone", "name the checkpoint of a run, or use --weights=last");
  std::shared_ptr<const CheckpointFile> file = open_verified(checkpoint.path, kOptimizerFile);
  SafetensorsReader reader(file);
  std::vector<std::string> names = reader.names();
  if (std::none_of(names.begin(), names.end(),
                   [](const std::string& name) { return name.starts_with(kAveragePrefix); }))
    user_error(kExpected, path, "none (its run had optimizer.ema = 0)", kRemedy);
  if (updates_of(reader) < 1) user_error(kExpected, path, "one of no update", "train on, or use --weights=last");
  checkpoint.files = {{kModelFile, file}};
  checkpoint.parameter_name = averaged_parameter;
  return checkpoint;
}

}  // namespace tokamak
