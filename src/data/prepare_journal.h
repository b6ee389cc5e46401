// What an interrupted `prepare` leaves behind so that the next one goes on: the plan (what is made of what) and the
// journal (how far it is). Tests: tests/data/prepare_journal_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/prepare_reader.h"
#include "data/shard.h"
#include "data/token_array.h"

namespace tokamak {

/// Everything that the result depends on. Two runs with equal plans give equal bytes.
struct PreparePlan {
  struct Input {
    FileFingerprint file;
    int64_t modified = 0;  // when, as the file system counts: a fingerprint does not see all bytes
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
  };

  std::vector<ShardInfo> shards;  // of all tokens, in order, both splits one after the other
  int64_t text_bytes = 0;         // that their tokens stand for
  int64_t documents = 0;          // entries in the log of documents
  int64_t files = 0;              // entries in the log of files
  PreparePlace place;             // where the input goes on
  std::vector<Move> moves;        // not empty: everything is made and only has to get its place, in this order
};

void write_plan(const PreparePlan& plan, const std::filesystem::path& folder);
void write_journal(const PrepareJournal& journal, const std::filesystem::path& folder);

/// From here on there is nothing to go on from.
void remove_journal(const std::filesystem::path& folder);

/// Nothing if there is none, or a damaged one, or one of another version.
std::optional<PreparePlan> read_plan(const std::filesystem::path& folder);
std::optional<PrepareJournal> read_journal(const std::filesystem::path& folder);

}  // namespace tokamak
