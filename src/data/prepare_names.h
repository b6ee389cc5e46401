// The names of the files that `prepare` makes: it moves, replaces and removes no others. Tests:
// tests/data/prepare_names_test.cpp.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace tokamak {

/// In the folder of unfinished work.
namespace unfinished {
inline constexpr const char* kLock = "lock";
inline constexpr const char* kPlan = "plan.json";
inline constexpr const char* kJournal = "journal.json";
inline constexpr const char* kDocuments = "documents.int64";
inline constexpr const char* kFiles = "files.int64";
inline constexpr const char* kTokens = "tokens";        // of shards, before they are cut into splits
inline constexpr const char* kTokenizer = "tokenizer";  // a folder
inline constexpr const char* kPipes = "pipes";          // a folder with copies of inputs
inline constexpr const char* kReplaced = "replaced";    // a folder with the index of the data set that was replaced
}  // namespace unfinished

/// The name of a shard: train_000000.bin.
std::string shard_name(std::string_view split, size_t number);

/// Whether a name is that of a shard of a finished folder.
bool is_shard_name(std::string_view name);

/// Whether a name is that of a file of a finished folder.
bool is_data_name(std::string_view name);

/// Whether `path`, relative to the folder of unfinished work, is something that `prepare` makes there.
bool is_unfinished_name(const std::filesystem::path& path);

/// Whether `path`, relative to the folder of unfinished work, may move from there to the name `to` of the data folder.
bool may_move(const std::filesystem::path& path, std::string_view to);

}  // namespace tokamak
