// A token array as documents, for `prepare` and `inspect`.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "data/open_source.h"  // SourceOptions

namespace tokamak {

/// Gives the number of tokens of the next document, each time it is called; nothing after the last.
using NextLength = std::function<std::optional<int64_t>()>;

/// The documents of the array of a file, one after the other, in parts of a quarter of options.part_bytes tokens (as
/// many bytes). Empty ones are left out.
std::unique_ptr<Source> token_source(const std::filesystem::path& path, std::unique_ptr<TokenArray> tokens,
                                     NextLength next, const SourceOptions& options);

/// The array as one document: of formats that do not know where documents begin.
std::unique_ptr<Source> token_source(const std::filesystem::path& path, std::unique_ptr<TokenArray> tokens,
                                     const SourceOptions& options);

}  // namespace tokamak
