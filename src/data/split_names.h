// Files whose names say which split of a data set they are. Tests: tests/data/split_names_test.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tokamak {

/// "train", "validation" or "test" if a word of the file's name, or a folder of the path, says so; else empty. Words
/// are what stands between characters that are no letters.
std::string split_of(const std::filesystem::path& path);

/// Keeps the files of an input that are of one split, by their names below it, and says how many were left out. A
/// UserError that counts what there is where none is.
size_t keep_split(std::vector<std::filesystem::path>& files, const std::string& split, const std::string& input);

/// What a user should know of files of several splits that are taken together; empty where there are none. What all
/// their paths begin with does not count.
std::string pooled_splits_warning(const std::vector<std::filesystem::path>& files);

}  // namespace tokamak
