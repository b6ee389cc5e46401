// What an interrupted `prepare` leaves behind so that the next one goes on: the plan (what is made of what) and the
// journal (how far it is). Tests: tests/data/prepare_journal_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/file_checksum.h"
#include "data/int64_log.h"
#include "data/prepare_reader.h"
#include "data/token_array.h"
#include "data/token_shard.h"

namespace tokamak {

/// Everything that the result depends on. Two runs with equal plans give equal bytes.
struct PreparePlan {
  struct Input {
    FileFingerprint file;
    std::string modified;  // when, as the file system counts: a fingerprint does not see all bytes
    bool operator==(const Input&) const = default;
  };

  std::map<std::string, std::string> options;  // by the names that users give them
  std::vector<Input> inputs;
};

/// The plan's entry for a file; of a pipe, which has none, only the name.
PreparePlan::Input plan_input(const std::filesystem::path& path);

/// What differs between an earlier plan and this one, in words; empty if nothing does.
std::string plan_difference(const PreparePlan& before, const PreparePlan& now);

/// How far it is. Files are named inside the folder of unfinished work.
struct PrepareJournal {
  struct Move {
    std::string from, to;  // a file there, and its name inside the output folder
    std::string checksum;  // of the file
  };

  std::vector<FileChecksum> tokenizer;  // its files
  std::vector<TokenShardInfo> shards;   // of all tokens, in order, both splits one after the other
  int64_t text_bytes = 0;               // that their tokens stand for
  Int64LogState documents;              // the log of documents
  Int64LogState files;                  // the log of files
  PreparePlace place;                   // where the input goes on
  std::vector<Move>
      moves;  // not empty: everything is made and only has to get its place, in this order, the index last
};

void write_plan(const PreparePlan& plan, const std::filesystem::path& folder);
void write_journal(const PrepareJournal& journal, const std::filesystem::path& folder);

/// From here on there is nothing to go on from.
void remove_journal(const std::filesystem::path& folder);

/// Nothing if there is none, or a damaged one, or one of another version. The files that a journal names are those that
/// `prepare` makes (data/prepare_names.h), no others.
std::optional<PreparePlan> read_plan(const std::filesystem::path& folder);
std::optional<PrepareJournal> read_journal(const std::filesystem::path& folder);

/// Whether there is a journal, be it damaged.
bool has_journal(const std::filesystem::path& folder);

/// The first file that an earlier run has kept to go on from, its tokenizer, shards and logs, and that is not as its
/// journal says; empty if all are. `pause` is called before each.
std::filesystem::path find_damage(const PrepareJournal& journal, const std::filesystem::path& folder,
                                  const std::function<void()>& pause);

}  // namespace tokamak
