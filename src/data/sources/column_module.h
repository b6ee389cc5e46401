// Documents from the module over Arrow's library (modules/parquet_module.h), which is opened when it is needed.
#pragma once

#include <filesystem>
#include <memory>

#include "data/open_source.h"

namespace tokamak {

/// A format that the module reads.
struct ColumnFormat {
  const char* where;     // in messages: [parquet]
  const char* title;     // "Parquet"
  const char* function;  // of the module
};

std::unique_ptr<Source> open_column(const std::filesystem::path& path, const SourceOptions& options,
                                    const ColumnFormat& format);

}  // namespace tokamak
