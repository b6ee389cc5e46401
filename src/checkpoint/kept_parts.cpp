#include "checkpoint/kept_parts.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/placed_file.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_listing.h"
#include "checkpoint/told_errors.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* kHostsFile = "part_hosts";
constexpr int64_t kMovedBytes = int64_t(4) << 20;

fs::path part_file(const fs::path& checkpoint, int rank) { return checkpoint / fmt::format("part_{}", rank); }

std::string to_text(const KeptPart& part) {
  json ranges = json::array();
  for (const KeptRange& range : part.ranges) ranges.push_back({range.file, range.begin, range.bytes});
  return format_json(ranges);
}

KeptPart from_text(const std::string& text) {
  KeptPart part;
  for (const json& range : parse_json(text))
    part.ranges.push_back({range.at(0).get<std::string>(), range.at(1).get<int64_t>(), range.at(2).get<int64_t>()});
  return part;
}

// What all ranks wrote to one place has no parts: it is one.
KeptPart read_part(const fs::path& checkpoint, int rank) {
  if (fs::exists(part_file(checkpoint, rank))) return from_text(read_file(part_file(checkpoint, rank), kLargeFile));
  KeptPart all;
  for (const FileRecord& file : read_record(checkpoint).files) all.ranges.push_back({file.name, 0, file.bytes});
  return all;
}

// Of one checkpoint, what the machines have of it.
struct Candidate {
  std::vector<std::string> hosts;         // by rank that wrote
  std::map<int, std::set<int>> parts_of;  // by the first rank of a machine
  bool has(int part) const {
    return std::ranges::any_of(parts_of, [&](const auto& one) { return one.second.contains(part); });
  }
  std::vector<int> lost() const {
    std::vector<int> lost;
    for (int part = 0; part < int(hosts.size()); ++part)
      if (!has(part)) lost.push_back(part);
    return lost;
  }
  // The machine that others get it from.
  int holder(int part) const {
    return std::ranges::find_if(parts_of, [&](const auto& one) { return one.second.contains(part); })->first;
  }
};

using Key = std::pair<int64_t, int64_t>;  // step, serial
using Candidates = std::map<Key, Candidate>;

std::string describe_own(const fs::path& folder) {
  json all = json::array();
  for (const ListedCheckpoint& one : read_checkpoints(checkpoints_folder(folder)).readable) {
    std::error_code absent;
    bool has_parts = fs::exists(one.path / kHostsFile, absent);
    json hosts = has_parts ? json(parse_json(read_file(one.path / kHostsFile))) : json::array({"one machine"});
    json parts = json::array();
    for (int rank = 0; rank < int(hosts.size()); ++rank)
      if (!has_parts || fs::exists(part_file(one.path, rank), absent)) parts.push_back(rank);
    all.push_back({one.record.state.step, one.record.serial, hosts, parts});
  }
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

Candidates read_all(const std::vector<std::string>& told) {
  Candidates all;
  for (size_t rank = 0; rank < told.size(); ++rank) {
    if (told[rank].empty()) continue;
    for (const json& one : parse_json(told[rank])) {
      Candidate& candidate = all[{one.at(0).get<int64_t>(), one.at(1).get<int64_t>()}];
      candidate.hosts = one.at(2).get<std::vector<std::string>>();
      candidate.parts_of[int(rank)] = one.at(3).get<std::set<int>>();
    }
  }
  return all;
}

std::string describe_loss(int64_t step, const Candidate& candidate) {
  std::vector<int> lost = candidate.lost();
  std::set<std::string> hosts;
  for (int part : lost) hosts.insert(candidate.hosts[size_t(part)]);
  return fmt::format(
      "the state after step {} cannot be had from memory: what rank{} {} had is on none of the machines that are left "
      "(it was on {} and the machine after it)",
      step, lost.size() > 1 ? "s" : "", fmt::join(lost, ", "), fmt::join(hosts, ", "));
}

// The newest of which all parts are there.
std::optional<Key> choose(const Candidates& all, int64_t saved, std::vector<std::string>* warnings) {
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    auto [step, serial] = one->first;
    if (step <= saved) break;
    if (one->second.lost().empty()) return one->first;
    if (warnings) warnings->push_back(describe_loss(step, one->second));
  }
  return std::nullopt;
}

void remove_others(const fs::path& folder, std::optional<Key> chosen) {
  for (const ListedCheckpoint& one : read_checkpoints(checkpoints_folder(folder)).readable)
    if (!chosen || Key(one.record.state.step, one.record.serial) != *chosen) remove_checkpoint(one.path);
}

// Moves parts from machine to machine, in an order that all know.
class Mover {
 public:
  Mover(fs::path checkpoint, const Candidate& candidate, const KeptMachines& all)
      : path_(std::move(checkpoint)), candidate_(candidate), all_(all) {}

  // What is written to on each machine is its own checkpoint, or one that is new there. Throws what went wrong here
  // when all has been moved, so that nobody waits.
  void run(const std::string& record) {
    std::optional<StagedFolder> made;
    if (all_.machines.is_first() && !candidate_.parts_of.contains(all_.machines.rank()))
      try_to([&] {
        make_folder(path_.parent_path());
        make_empty(made.emplace(path_).staged_path(), record);
      });
    fs::path mine = made ? made->staged_path() : path_;
    for (int first : all_.machines.firsts())
      for (int part = 0; part < int(candidate_.hosts.size()); ++part) move(first, part, mine);
    if (error_) std::rethrow_exception(error_);
    if (made) made->commit();
  }

 private:
  void make_empty(const fs::path& folder, const std::string& record) const {
    write_file_atomic(folder / kStateFile, record);
    write_part_hosts(folder, candidate_.hosts);
    for (const FileRecord& file : read_record(folder).files) PlacedFile::make(folder / file.name, file.bytes);
  }

  template <typename Work>
  void try_to(const Work& work) {
    if (error_) return;
    try {
      work();
    } catch (const UserError&) {
      error_ = std::current_exception();
    }
  }

  void move(int to, int part, const fs::path& mine) {
    auto has = candidate_.parts_of.find(to);
    if (has != candidate_.parts_of.end() && has->second.contains(part)) return;
    int from = candidate_.holder(part);
    if (all_.machines.rank() == from) send(to, read_part(mine, part), mine);
    if (all_.machines.rank() == to) receive(from, part, mine);
  }

  void send(int to, const KeptPart& part, const fs::path& mine) {
    std::string text = to_text(part);
    int64_t length = int64_t(text.size());
    all_.links->send(&length, sizeof length, DType::kU8, to);
    all_.links->send(text.data(), length, DType::kU8, to);
    std::map<std::string, std::unique_ptr<MappedFile>> files;
    for_pieces(part, [&](const std::string& file, int64_t at, int64_t bytes) {
      std::unique_ptr<MappedFile>& mapped = files[file];
      if (!mapped) mapped = std::make_unique<MappedFile>(mine / file);
      all_.links->send(mapped->bytes().data() + at, bytes, DType::kU8, to);
    });
  }

  void receive(int from, int rank, const fs::path& mine) {
    int64_t length = 0;
    all_.links->recv(&length, sizeof length, DType::kU8, from);
    std::string text(size_t(length), ' ');
    all_.links->recv(text.data(), length, DType::kU8, from);
    KeptPart part = from_text(text);
    std::map<std::string, std::unique_ptr<PlacedFile>> files;
    std::vector<std::byte> piece;
    for_pieces(part, [&](const std::string& file, int64_t at, int64_t bytes) {
      piece.resize(size_t(bytes));
      all_.links->recv(piece.data(), bytes, DType::kU8, from);
      try_to([&] {
        std::unique_ptr<PlacedFile>& placed = files[file];
        if (!placed) placed = std::make_unique<PlacedFile>(mine / file);
        placed->write(at, piece);
      });
    });
    try_to([&] { write_part(mine, rank, std::move(part)); });
  }

  static void for_pieces(const KeptPart& part, const std::function<void(const std::string&, int64_t, int64_t)>& move) {
    for (const KeptRange& range : part.ranges)
      for (int64_t at = 0; at < range.bytes; at += kMovedBytes)
        move(range.file, range.begin + at, std::min(kMovedBytes, range.bytes - at));
  }

  fs::path path_;
  const Candidate& candidate_;
  const KeptMachines& all_;
  std::exception_ptr error_;
};

// The same on all machines.
std::string record_of(const fs::path& checkpoint, const Candidate& candidate, const KeptMachines& all) {
  int first = candidate.parts_of.begin()->first;
  return all.exchange(all.machines.rank() == first ? read_file(checkpoint / kStateFile) : "")[size_t(first)];
}

}  // namespace

void write_part(const fs::path& checkpoint, int rank, KeptPart part) {
  std::ranges::sort(part.ranges, {}, [](const KeptRange& one) { return std::tie(one.file, one.begin); });
  KeptPart joined;
  for (KeptRange& range : part.ranges) {
    KeptRange* last = joined.ranges.empty() ? nullptr : &joined.ranges.back();
    if (last && last->file == range.file && last->begin + last->bytes == range.begin)
      last->bytes += range.bytes;
    else
      joined.ranges.push_back(std::move(range));
  }
  write_file_atomic(part_file(checkpoint, rank), to_text(joined));
}

void write_part_hosts(const fs::path& checkpoint, const std::vector<std::string>& hosts) {
  write_file_atomic(checkpoint / kHostsFile, format_json(json(hosts)));
}

void gather_kept_parts(const fs::path& folder, int64_t saved, const KeptMachines& all,
                       std::vector<std::string>* warnings) {
  bool speaks = all.machines.is_first();
  Candidates candidates = read_all(all.exchange(speaks ? describe_own(folder) : ""));
  std::optional<Key> chosen = choose(candidates, saved, warnings);
  if (speaks) remove_others(folder, chosen);
  if (!chosen) return;
  fs::path checkpoint = checkpoints_folder(folder) / checkpoint_name(chosen->first);
  const Candidate& candidate = candidates.at(*chosen);
  std::string record = record_of(checkpoint, candidate, all);
  std::vector<std::string> told =
      all.exchange(told_by([&] { return Mover(checkpoint, candidate, all).run(record), std::string(); }));
  for (const std::string& error : told)
    if (!error.empty() && warnings) warnings->push_back(error.substr(1));
}

}  // namespace tokamak
