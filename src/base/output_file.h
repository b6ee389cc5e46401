// Files that the user named for output. They may be anything: what is no regular file keeps its place, and is written
// to. (Files of ours in folders of ours are AtomicFile's, base/file.h.) Tests: tests/base/output_file_test.cpp.
#pragma once

#include <filesystem>
#include <string_view>

namespace tokamak {

/// Writes it all: a regular file as AtomicFile does, at the end of links; a device or a pipe in place; `-`, /dev/stdout
/// and their like to what this process has open. UserErrors: a folder, a disk, a pipe that nobody reads, what cannot be
/// written. From the first pipe on the process ignores SIGPIPE.
void write_output_file(const std::filesystem::path& name, std::string_view content);

/// Throws before the work what write_output_file() would throw behind it, as far as can be told without writing.
void check_output_file(const std::filesystem::path& name);

}  // namespace tokamak
