// The last step of `prepare`: which of all tokens become its validation part, and what the index tells of both.
// Tests: tests/data/prepare_draw_test.cpp, tests/data/prepare_test.cpp.
#pragma once

#include "data/prepare.h"
#include "data/prepare_shards.h"

namespace tokamak {

/// Cuts the finished shards in `folder` as the options say, and fills in shards, counts and sources of the index, of
/// these inputs. Says which files get which names. `pause` is called now and then.
std::vector<PrepareJournal::Move> cut_validation(const std::filesystem::path& folder, PrepareShards& shards,
                                                 const PrepareOptions& options,
                                                 std::span<const PreparePlan::Input> inputs, TokenShardIndex& index,
                                                 const std::function<void()>& pause);

}  // namespace tokamak
