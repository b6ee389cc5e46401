#include "checkpoint/model_types.h"

#include "model/model.h"

namespace tokamak {

std::vector<NamedType> model_types(const ModelConfig& model) {
  std::vector<NamedType> types;
  for (const ParameterInfo& parameter : model_parameters(model))
    types.push_back({parameter.name, {DType::kF32, parameter.shape}});
  return types;
}

}  // namespace tokamak
