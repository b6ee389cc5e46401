// Inputs that can be read only once, such as standard input, as files that can be read again.
#pragma once

#include <filesystem>
#include <vector>

#include "data/prepare.h"

namespace tokamak {

/// False for standard input, pipes and devices.
bool can_be_read_again(const std::filesystem::path& input);

/// Copies each input that can be read only once into a file of its name in the folder; gives the files to read instead.
std::vector<std::filesystem::path> store_pipes(const std::vector<std::filesystem::path>& inputs,
                                               const PrepareOptions& options, const std::filesystem::path& folder,
                                               const PrepareHooks& hooks);

}  // namespace tokamak
