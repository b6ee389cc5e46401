#include "run/step_inputs.h"

#include "base/error.h"
#include "data/document_starts.h"

#include <cstring>

namespace tokamak {

int32_t random_seed(int64_t seed) { return int32_t(uint32_t(seed) ^ uint32_t(seed >> 32) * 0x9E3779B9u); }

void add_batch(InputValues& values, const Batch& batch, const float& loss_weight, int64_t part, int64_t parts) {
  values["tokens"] = std::as_bytes(part_of(batch.tokens, part, parts));
  values["targets"] = std::as_bytes(part_of(batch.targets, part, parts));
  values["documents"] = std::as_bytes(part_of(batch.documents, part, parts));
  values["loss_weight"] = bytes_of(loss_weight);
}

void set_inputs(Program& program, const InputValues& values) {
  for (const Argument& argument : program.plan().graph.arguments()) {
    if (argument.kind != Argument::Kind::kInput || program.is_set(argument)) continue;
    auto at = values.find(argument.name);
    TOKAMAK_CHECK(at != values.end(), "nobody knows input '{}' of '{}'", argument.name, program.plan().graph.name());
    program.set_input(argument.name, at->second.data(), int64_t(at->second.size()));
  }
}

float loss_weight(std::span<const Batch> batches, int64_t parts) {
  int64_t counted = 0;
  for (const Batch& batch : batches) counted += count_targets(batch.targets);
  return counted > 0 ? float(double(int64_t(batches.size()) * parts) / double(counted)) : 0;
}

double scalar_of(Readback& readback) {
  float value = 0;
  std::memcpy(&value, readback.wait().data(), sizeof value);
  return double(value);
}

}  // namespace tokamak
