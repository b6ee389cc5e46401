// What the files of a model hold; apart from what reads them, which a fuzz test builds without the families.
// Tests: tests/e2e/export_test.cpp, tests/checkpoint/checkpoint_test.cpp.
#pragma once

#include "checkpoint/safetensors.h"

#include <vector>

namespace tokamak {

struct ModelConfig;

/// The parameters of a model, in its order, as files of ours have them: in f32.
std::vector<NamedType> model_types(const ModelConfig& model);

}  // namespace tokamak
