// WebDataset archives whose .npy members are tokens. Tests: tests/data/sources/tar_tokens_test.cpp.
#pragma once

#include <memory>

#include "data/open_source.h"

namespace tokamak {

/// The .npy members of an uncompressed tar, in order, each a document; other members are passed over.
std::unique_ptr<Source> open_tar_token_source(const std::filesystem::path& path, const SourceOptions& options);

}  // namespace tokamak
