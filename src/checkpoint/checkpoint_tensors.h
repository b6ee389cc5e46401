// The tensors of a run as two safetensors files: parameters, and every other state. A part of checkpoint.h.
#pragma once

#include "checkpoint/checkpoint_state.h"

namespace tokamak {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";

/// Write one file each into the folder, with the tensors' global shapes; say what was written. Where ranks have shares
/// of them, the rank that leads calls these, and the others join_saving meanwhile.
FileRecord save_parameters(const std::filesystem::path& folder, const TensorStore& store);
FileRecord save_optimizer(const std::filesystem::path& folder, const TensorStore& store);
void join_saving(const TensorStore& store);

/// One of a checkpoint's files, compared with its checksum: UserError when it is damaged.
std::shared_ptr<const CheckpointFile> open_verified(const std::filesystem::path& folder, const char* name);

/// Parameters to a store of one rank, which may have them in another type, on the rank that leads; `to` of the others
/// is null. All ranks call it.
void copy_parameters(const TensorStore& from, TensorStore* to);

}  // namespace tokamak
