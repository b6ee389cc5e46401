#include "checkpoint/verify.h"

#include "backend/digest.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/parallel.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_tensors.h"
#include "checkpoint/float_conversion.h"
#include "checkpoint/hugging_face_folder.h"
#include "checkpoint/model_tensors.h"
#include "checkpoint/model_types.h"
#include "checkpoint/state_slices.h"
#include "config/config.h"
#include "config/json.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr size_t kReadBytes = size_t(1) << 20;  // bytes; a multiple of every element's

// Pages that have been looked at do not stay in memory.
void for_pieces(const MappedFile& file, std::span<const std::byte> bytes,
                const std::function<void(std::span<const std::byte>)>& look) {
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(kReadBytes, bytes.size()))) {
    std::span<const std::byte> piece = bytes.first(std::min(kReadBytes, bytes.size()));
    look(piece);
    file.release(piece);
  }
}

std::string checksum_of(const MappedFile& file, std::span<const std::byte> bytes) {
  Checksum sum;
  for_pieces(file, bytes, [&](auto piece) { sum.update(piece); });
  return format_checksum(sum.digest());
}

// Of a tensor, as the expected one was taken: of all bytes in their order, or of a file that several ranks wrote.
std::string checksum_like(std::string_view expected, const MappedFile& file, const SafetensorsReader& reader,
                          const std::string& tensor) {
  std::span<const std::byte> bytes = reader.bytes(tensor);
  if (!is_slice_checksum(expected)) return checksum_of(file, bytes);
  int64_t size = dtype_bytes(reader.type(tensor).dtype), grain = int64_t(kReadBytes) / size;
  uint64_t salt = digest_salt(tensor);
  std::vector<uint64_t> sums(static_cast<size_t>(num_threads()));
  parallel_for(int64_t(bytes.size()) / size, grain, [&](int64_t at, int64_t end, int thread) {
    for_pieces(file, bytes.subspan(size_t(at * size), size_t((end - at) * size)), [&](auto piece) {
      sums[size_t(thread)] += slice_checksum(piece, size, salt, at);
      at += int64_t(piece.size()) / size;
    });
  });
  return format_slice_checksum(std::accumulate(sums.begin(), sums.end(), uint64_t(0)));
}

std::string compare(std::string_view what, std::string_view expected, std::string_view got) {
  return expected == got ? "" : fmt::format("expected {} {}, got {}", what, expected, got);
}

// Tensors whose bytes are not those that were written, as far as the header tells where they are.
std::vector<CheckpointProblem> damaged_tensors(const std::shared_ptr<const MappedFile>& file,
                                               const FileRecord& record) {
  std::vector<CheckpointProblem> problems;
  try {
    SafetensorsReader reader(file);
    for (const auto& [name, checksum] : record.tensors) {
      if (!reader.contains(name)) continue;  // then the header is not what it was
      std::string what = compare("checksum", checksum, checksum_like(checksum, *file, reader, name));
      if (!what.empty()) problems.push_back({file->path().string(), name, what});
    }
  } catch (const UserError&) {
    return {};  // the same
  }
  return problems;
}

// The header has another checksum than its tensors, so that each can be compared by another rank.
std::string header_problem(const MappedFile& file, const SafetensorsReader& reader, const FileRecord& record) {
  std::string what = compare("checksum", record.header, checksum_of(file, reader.header_bytes()));
  for (const std::string& name : reader.names())
    if (what.empty() && !record.tensors.contains(name)) what = fmt::format("expected no tensor '{}'", name);
  return what.empty() ? what : "header: " + what;
}

// Of one rank's share.
std::vector<CheckpointProblem> check_share(const std::shared_ptr<const MappedFile>& file, const FileRecord& record,
                                           const VerifyShare& share) {
  std::string path = file->path().string();
  int64_t size = int64_t(file->bytes().size()), at = 0;
  std::string what = compare("bytes:", fmt::format("{}", record.bytes), fmt::format("{}", size));
  if (!what.empty()) return {{path, "", what}};
  SafetensorsReader reader(file);
  if (what = header_problem(*file, reader, record); !what.empty()) return {{path, "", what}};
  std::vector<CheckpointProblem> problems;
  for (const std::string& name : reader.names()) {
    std::span<const std::byte> bytes = reader.bytes(name);
    int64_t middle = at + int64_t(bytes.size()) / 2;
    at += int64_t(bytes.size());
    if (middle * share.count / std::max<int64_t>(size, 1) != share.index) continue;
    const std::string& expected = record.tensors.at(name);
    what = compare("checksum", expected, checksum_like(expected, *file, reader, name));
    if (!what.empty()) problems.push_back({path, name, what});
  }
  return problems;
}

// What is wrong with one of the checkpoint's files: tensors, where it is they.
std::vector<CheckpointProblem> check_file(const std::shared_ptr<const MappedFile>& file, const FileRecord& record) {
  std::string path = file->path().string();
  std::string what =
      compare("bytes:", fmt::format("{}", record.bytes), fmt::format("{}", int64_t(file->bytes().size())));
  if (!what.empty()) return {{path, "", what}};
  if (record.checksum.empty()) return check_share(file, record, {0, 1});
  what = compare("checksum", record.checksum, checksum_of(*file, file->bytes()));
  if (what.empty()) return {};
  std::vector<CheckpointProblem> tensors = damaged_tensors(file, record);
  return tensors.empty() ? std::vector<CheckpointProblem>{{path, "", what}} : tensors;
}

std::string place_of(const CheckpointProblem& problem) {
  return problem.tensor.empty() ? problem.file : fmt::format("'{}' of {}", problem.tensor, problem.file);
}

void require_none(const std::vector<CheckpointProblem>& problems) {
  if (problems.empty()) return;
  std::string more = problems.size() > 1 ? fmt::format(" ({} more tensors are damaged)", problems.size() - 1) : "";
  user_error("[checkpoint] {}: {}{}; the checkpoint is damaged: use an older one beside it", place_of(problems[0]),
             problems[0].what, more);
}

/// Looks at one checkpoint and notes what is wrong.
class Checker {
 public:
  explicit Checker(const fs::path& path) { checked_.path = path; }

  void check_own(const fs::path& folder) {
    std::optional<CheckpointRecord> record;
    note(folder / kStateFile, [&] { record = read_record(folder); });
    if (!record) return;
    FoundCheckpoint found{folder, record->state};
    for (const FileRecord& file : record->files)
      note(folder / file.name, [&] {
        auto opened = std::make_shared<const CheckpointFile>(folder / file.name);
        std::vector<CheckpointProblem> problems = check_file(opened, file);
        if (problems.empty()) found.files[file.name] = opened;
        add(std::move(problems));
      });
    check_tensors(found);
  }

  void check_other(const FoundCheckpoint& found) {
    checked_.has_checksums = false;
    check_tensors(found);
  }

  CheckedCheckpoint take() { return std::move(checked_); }

 private:
  void add(std::vector<CheckpointProblem> problems) {
    for (CheckpointProblem& problem : problems) checked_.problems.push_back(std::move(problem));
  }

  template <typename Work>
  void note(const fs::path& file, const Work& work) {
    try {
      work();
    } catch (const UserError& error) {
      add({{file.string(), "", error.what()}});
    }
  }

  void check_tensors(const FoundCheckpoint& found) {
    for (const auto& [name, file] : found.files) {
      ++checked_.files;
      checked_.bytes += int64_t(file->bytes().size());
      note(file->path(), [&] { check_numbers(file); });
    }
    bool has_model = std::any_of(found.files.begin(), found.files.end(),
                                 [](const auto& file) { return file.first != kOptimizerFile; });
    if (has_model) note(found.path, [&] { check_model(found); });
  }

  void check_numbers(const std::shared_ptr<const MappedFile>& file) {
    SafetensorsReader reader(file);
    checked_.tensors += int64_t(reader.names().size());
    if (checked_.has_checksums) return;  // nothing else was ever saved
    for (const std::string& name : reader.names()) {
      if (!reader.is_known(name)) continue;
      DType dtype = reader.type(name).dtype;
      bool finite = true;
      for_pieces(*file, reader.bytes(name), [&](auto piece) { finite = finite && all_finite(piece, dtype); });
      if (!finite) add({{file->path().string(), name, "expected finite numbers, got infinities or NaN"}});
    }
  }

  static void check_model(const FoundCheckpoint& found) {
    RunConfig config = run_config_from_json(found.state.config_json, found.path.string());
    ModelTensors(found).require(model_types(config.model));
  }

  CheckedCheckpoint checked_;
};

}  // namespace

void verify_file(const std::shared_ptr<const MappedFile>& file, const FileRecord& record) {
  require_none(check_file(file, record));
}

void verify_file(const std::shared_ptr<const MappedFile>& file, const FileRecord& record, const VerifyShare& share) {
  if (!record.header.empty()) return require_none(check_share(file, record, share));
  if (share.index == 0) verify_file(file, record);
}

CheckedCheckpoint check_checkpoint(const fs::path& checkpoint) {
  std::error_code error;
  fs::path folder = fs::canonical(checkpoint, error);
  Checker checker(checkpoint);
  if (!error && (fs::exists(folder / kStateFile, error) || is_checkpoint_name(folder.filename().string()))) {
    checker.check_own(folder);
    return checker.take();
  }
  refuse_file_of_model(checkpoint);
  std::optional<FoundCheckpoint> other = open_hugging_face(checkpoint);
  if (!other)
    user_error(
        "[checkpoint] {}: expected a checkpoint's folder or a model in Hugging Face's form, got {}; check the path",
        checkpoint.string(), error ? "nothing" : "neither");
  checker.check_other(*other);
  return checker.take();
}

}  // namespace tokamak
