// The tensors of a run as two safetensors files: parameters, and every other state. A part of checkpoint.h.
#pragma once

#include "train/checkpoint_state.h"

namespace tokamak {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";

/// Write one file each into the folder, with the tensors' global shapes; say what was written.
FileRecord save_parameters(const std::filesystem::path& folder, const TensorStore& store);
FileRecord save_optimizer(const std::filesystem::path& folder, const TensorStore& store);

}  // namespace tokamak
