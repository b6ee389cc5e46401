#include "checkpoint/find_together.h"

#include "backend/agreement.h"
#include "base/error.h"
#include "base/json.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_listing.h"
#include "checkpoint/verify.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

struct SharedCandidate {
  std::string name;
  int64_t serial;
};

struct SharedCandidates {
  std::vector<SharedCandidate> readable;  // written last first
  std::vector<std::string> reasons;       // why others are not
};

// Of the rank that leads; where machines share no folders, others may see none or other ones.
SharedCandidates candidates_of_leader(const fs::path& out, const MeshRanks& ranks) {
  json said;
  if (leads(&ranks)) {
    CheckpointListing listing = read_checkpoints(checkpoints_folder(out));
    said = {{"readable", json::array()}, {"reasons", listing.reasons}};
    for (const ListedCheckpoint& checkpoint : listing.readable)
      said["readable"].push_back({checkpoint.path.filename().string(), checkpoint.record.serial});
  }
  said = json::parse(adopt(ranks.world(), said.dump(-1, ' ', false, json::error_handler_t::replace)));
  SharedCandidates candidates;
  for (const json& one : said["readable"])
    candidates.readable.push_back({one[0].get<std::string>(), one[1].get<int64_t>()});
  candidates.reasons = said["reasons"].get<std::vector<std::string>>();
  return candidates;
}

VerifyShare share_of(const MeshRanks& ranks, const std::string& mine) {
  std::vector<std::string> places = ranks.world().exchange(mine);
  auto here = places.begin() + ranks.rank();
  return {std::count(places.begin(), here, mine), std::count(places.begin(), places.end(), mine)};
}

FoundCheckpoint open_share(const fs::path& folder, int64_t serial, const VerifyShare& share) {
  CheckpointRecord record = read_record(folder);
  if (record.serial != serial)
    user_error("[checkpoint] {}: expected the one that rank 0 sees, number {}, got number {}; copy it to all machines",
               folder.string(), serial, record.serial);
  FoundCheckpoint opened{folder, record.state};
  for (const FileRecord& file : record.files) {
    opened.files[file.name] = std::make_shared<const CheckpointFile>(folder / file.name);
    verify_file(opened.files[file.name], file, share);
  }
  return opened;
}

// What the first rank that has something against it says; empty: it is good.
std::string first_problem(const MeshRanks& ranks, const std::string& mine) {
  for (const std::string& theirs : ranks.world().exchange(mine))
    if (!theirs.empty()) return theirs;
  return {};
}

}  // namespace

std::optional<FoundCheckpoint> find_together(const fs::path& out, std::vector<std::string>* warnings,
                                             const MeshRanks* ranks, const std::string& place) {
  if (!ranks) return find_checkpoint(out, warnings);
  SharedCandidates candidates = candidates_of_leader(out, *ranks);
  VerifyShare share = share_of(*ranks, place);
  std::optional<FoundCheckpoint> found;
  for (const SharedCandidate& candidate : candidates.readable) {
    std::string mine;
    try {
      found = open_share(checkpoints_folder(out) / candidate.name, candidate.serial, share);
    } catch (const UserError& error) {
      mine = error.what();
    }
    std::string problem = first_problem(*ranks, mine);
    if (problem.empty()) break;
    found.reset();
    candidates.reasons.push_back(problem);
  }
  settle_search(out, found.has_value(), candidates.reasons, warnings);
  return found;
}

}  // namespace tokamak
