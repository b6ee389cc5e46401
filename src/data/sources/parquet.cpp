// Parquet: one column's texts, or lists of ids, are documents.
#include "data/sources/column_module.h"
#include "data/sources/modules/parquet_module.h"
#include "data/sources/source_format.h"

namespace tokamak {

namespace {

std::unique_ptr<Source> open(const std::filesystem::path& path, const SourceOptions& options) {
  return open_column(path, options, {.where = "parquet", .title = "Parquet", .function = kOpenParquet});
}

}  // namespace

const DocumentReader parquet_documents = {.open = open, .looks = true};

}  // namespace tokamak
