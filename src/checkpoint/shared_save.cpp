#include "checkpoint/shared_save.h"

#include "backend/digest.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "checkpoint/told_errors.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <random>

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* kTokenFile = "writing";
constexpr char kSeen = '+', kUnseen = '-';  // how what a rank tells begins

std::string random_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace

SharedSave::SharedSave(fs::path out, CheckpointState state, std::vector<StateFile> files)
    : out_(std::move(out)), state_(std::move(state)), files_(std::move(files)) {
  for (const StateFile& file : files_) places_.push_back({safetensors_layout(file.tensors, model_metadata()), nullptr});
}

std::unique_ptr<SharedSave> SharedSave::begin(const fs::path& out, const CheckpointState& state,
                                              const TensorStore& store, const Exchange& exchange, int maker) {
  std::unique_ptr<SharedSave> save(new SharedSave(out, state, state_files(store)));
  bool makes = store.ranks()->rank() == maker;
  std::vector<std::string> told = exchange(told_by([&] { return makes ? save->make_files() : std::string(); }));
  require_no_error(state.step, told);
  std::string made = told[size_t(maker)];
  told = exchange(told_by([&] { return std::string(1, save->open_files(made) ? kSeen : kUnseen); }));
  require_no_error(state.step, told);
  bool all_see = std::ranges::all_of(told, [](const std::string& text) { return text[0] == kSeen; });
  return all_see ? std::move(save) : nullptr;
}

// What the others are told: the folder's name, and a word that nobody else has written there.
std::string SharedSave::make_files() {
  staged_ = std::make_unique<StagedCheckpoint>(out_, state_);
  for (size_t i = 0; i < files_.size(); ++i)
    PlacedFile::make(staged_->folder() / files_[i].name, places_[i].layout.bytes);
  std::string token = random_token();
  write_file_atomic(staged_->folder() / kTokenFile, token);
  return json{staged_->folder().filename().string(), token}.dump();
}

bool SharedSave::open_files(const std::string& told) {
  json names = json::parse(told);
  folder_ = checkpoints_folder(out_) / names[0].get<std::string>();
  std::error_code absent;
  if (!fs::exists(folder_ / kTokenFile, absent) || read_file(folder_ / kTokenFile) != names[1].get<std::string>())
    return false;
  for (size_t i = 0; i < files_.size(); ++i) places_[i].opened = std::make_unique<PlacedFile>(folder_ / files_[i].name);
  return true;
}

std::string SharedSave::write(const std::vector<StateSlice>& slices, const ReadSlice& read) {
  return told_by([&] {
    std::vector<std::vector<uint64_t>> sums;  // by file and tensor
    for (const StateFile& file : files_) sums.emplace_back(file.tensors.size(), 0);
    for (const StateSlice& slice : slices) sums[slice.file][slice.tensor] = write_slice(slice, read);
    for (size_t i = 0; i < places_.size(); ++i) {
      if (staged_) places_[i].opened->write(0, std::as_bytes(std::span(places_[i].layout.header)));
      places_[i].opened->sync();
    }
    return json(sums).dump();
  });
}

// What lies side by side in both the slice and the tensor, of the elements [at, at + piece).
void SharedSave::for_runs(const StateSlice& slice, int64_t at, std::span<const std::byte> piece, const TakeRun& take) {
  int64_t size = element_bytes(slice), end = at + int64_t(piece.size()) / size;
  auto run = std::ranges::partition_point(slice.runs, [&](const PartRun& r) { return r.part + r.count <= at; });
  for (; run != slice.runs.end() && run->part < end; ++run) {
    int64_t first = std::max(run->part, at), last = std::min(run->part + run->count, end);
    take(run->whole + first - run->part, piece.subspan(size_t((first - at) * size), size_t((last - first) * size)));
  }
}

int64_t SharedSave::element_bytes(const StateSlice& slice) const {
  return dtype_bytes(files_[slice.file].tensors[slice.tensor].type.dtype);
}

void SharedSave::place(const StateSlice& slice, int64_t at, std::span<const std::byte> piece) {
  File& file = places_[slice.file];
  int64_t size = element_bytes(slice), begin = file.layout.begin[slice.tensor];
  for_runs(slice, at, piece, [&](int64_t whole, auto elements) { file.opened->write(begin + whole * size, elements); });
}

uint64_t SharedSave::write_slice(const StateSlice& slice, const ReadSlice& read) {
  const auto& [name, type] = files_[slice.file].tensors[slice.tensor];
  uint64_t sum = 0, salt = digest_salt(name);
  for (int64_t at = 0; at < slice.count; at += kSlicePiece) {
    std::span<const std::byte> piece = read(slice, at, std::min(kSlicePiece, slice.count - at));
    require_finite(out_, name, piece, type.dtype);
    place(slice, at, piece);
    for_runs(slice, at, piece, [&](int64_t whole, auto elements) {
      sum += slice_checksum(elements, dtype_bytes(type.dtype), salt, whole);
    });
  }
  return sum;
}

std::vector<FileRecord> SharedSave::records(const std::vector<std::string>& reports) const {
  std::vector<FileRecord> records;
  std::vector<json> sums;
  for (const std::string& report : reports) sums.push_back(json::parse(report));
  for (size_t file = 0; file < files_.size(); ++file) {
    const SafetensorsLayout& layout = places_[file].layout;
    FileRecord record{files_[file].name, layout.bytes, "", {}, ""};
    record.header = format_checksum(checksum(std::as_bytes(std::span(layout.header))));
    for (size_t tensor = 0; tensor < files_[file].tensors.size(); ++tensor) {
      uint64_t sum = 0;
      for (const json& of_rank : sums) sum += of_rank[file][tensor].get<uint64_t>();
      record.tensors[files_[file].tensors[tensor].name] = format_slice_checksum(sum);
    }
    records.push_back(std::move(record));
  }
  return records;
}

void SharedSave::remove_token() const {
  std::error_code error;
  fs::remove(folder_ / kTokenFile, error);
  if (error) file_error("remove", folder_ / kTokenFile, error.value());
}

void SharedSave::finish(const std::vector<std::string>& reports, const KeepRule& keep) {
  remove_token();
  staged_->finish(state_, records(reports), keep);
}

void SharedSave::finish_like(const std::string& record) {
  remove_token();
  staged_->finish_like(record);
}

namespace {

void complete_together(SharedSave& save, int64_t step, const KeepRule& keep, bool leads, const Exchange& exchange,
                       const std::vector<StateSlice>& slices, const ReadSlice& read) {
  std::vector<std::string> reports = exchange(save.write(slices, read));
  require_no_error(step, reports);
  require_no_error(step, exchange(told_by([&] {
                     if (leads) save.finish(reports, keep);
                     return std::string();
                   })));
}

// One rank has all.
void complete_alone(const fs::path& out, const CheckpointState& state, const KeepRule& keep,
                    const std::vector<StateFile>& files, const std::vector<StateSlice>& slices, const ReadSlice& read) {
  try {
    StagedCheckpoint staged(out, state);
    staged.finish(state, write_files(staged.folder(), files, slices, read), keep);
  } catch (const UserError& error) {
    refuse_save(state.step, error.what());
  }
}

}  // namespace

CompleteSave begin_save(const fs::path& out, const CheckpointState& state, const TensorStore& store,
                        const KeepRule& keep, Exchange exchange) {
  if (!store.ranks())
    return [=, files = state_files(store)](const std::vector<StateSlice>& slices, const ReadSlice& read) {
      complete_alone(out, state, keep, files, slices, read);
    };
  std::shared_ptr<SharedSave> save = SharedSave::begin(out, state, store, exchange);
  if (!save) return {};
  return [save, step = state.step, keep, leads = store.leads(), exchange = std::move(exchange)](
             const std::vector<StateSlice>& slices, const ReadSlice& read) {
    complete_together(*save, step, keep, leads, exchange, slices, read);
  };
}

bool save_in_slices(const fs::path& out, const CheckpointState& state, const TensorStore& store, const KeepRule& keep) {
  CompleteSave complete = begin_save(out, state, store, keep,
                                     [&store](std::string_view mine) { return store.ranks()->world().exchange(mine); });
  if (!complete) return false;
  std::vector<StateFile> files = state_files(store);
  complete(owned_slices(store, files), read_from(store, files));
  return true;
}

}  // namespace tokamak
