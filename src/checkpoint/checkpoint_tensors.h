// The tensors of a run as two safetensors files: parameters, and every other state. A part of checkpoint.h.
#pragma once

#include "checkpoint/checkpoint_state.h"
#include "checkpoint/safetensors.h"

namespace tokamak {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";

/// One of a checkpoint's files and its tensors with their global shapes, in their order there.
struct StateFile {
  const char* name;
  std::vector<NamedType> tensors;
};
/// Both files of what the store keeps.
std::vector<StateFile> state_files(const TensorStore& store);

/// Writes both into the folder on the rank that leads, a whole tensor at a time; says what was written. The others
/// join_saving meanwhile. For ranks that share no folders.
std::vector<FileRecord> gather_files(const std::filesystem::path& folder, const TensorStore& store);
void join_saving(const TensorStore& store);

/// All its tensors are written: what to record of the file.
FileRecord finish_file(SafetensorsWriter& writer, const char* name);

/// A state from which no run can go on must not take the place of a good one: UserError where numbers of the tensor are
/// not finite. `out`: the run's folder.
void require_finite(const std::filesystem::path& out, const std::string& tensor, std::span<const std::byte> bytes,
                    DType dtype);

/// One of a checkpoint's files, compared with its checksum: UserError when it is damaged.
std::shared_ptr<const CheckpointFile> open_verified(const std::filesystem::path& folder, const char* name);

/// Parameters to a store of one rank, which may have them in another type, on the rank that leads; `to` of the others
/// is null. All ranks call it.
void copy_parameters(const TensorStore& from, TensorStore* to);

}  // namespace tokamak
