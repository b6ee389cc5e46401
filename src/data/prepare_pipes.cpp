#include "data/prepare_pipes.h"

#include <string>

#include "base/error.h"
#include "base/file.h"
#include "data/sources/byte_stream.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

void copy_stream(ByteStream& stream, AtomicFile& file, const PrepareHooks& hooks) {
  std::string buffer(size_t(1) << 20, '\0');
  while (size_t count = stream.read(buffer)) {
    file.write(std::string_view(buffer).substr(0, count));
    hooks.progress({"copying standard input", stream.bytes_read(), 0});
    if (hooks.stop()) user_error("[prepare] stopped while the input was copied");
  }
}

}  // namespace

bool can_be_read_again(const fs::path& input) { return fs::is_regular_file(input) || fs::is_directory(input); }

std::vector<fs::path> store_pipes(const std::vector<fs::path>& inputs, const PrepareOptions& options,
                                  const fs::path& folder, const PrepareHooks& hooks) {
  std::vector<fs::path> files;
  for (const fs::path& input : inputs) {
    files.push_back(input);
    if (can_be_read_again(input)) continue;
    fs::path place = folder / std::to_string(files.size());
    make_folder(place);
    files.back() = place / (input == "-" ? fs::path("standard_input") : input.filename());
    AtomicFile file(files.back());
    copy_stream(*open_bytes(input, options.sources), file, hooks);
    file.commit();
  }
  return files;
}

}  // namespace tokamak
