#include "data/ledger_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/checksum.h"
#include "base/error.h"
#include "base/json.h"
#include "data/fingerprint.h"
#include "data/json_fields.h"
#include "data/token_shard_index.h"

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr const char* kFormat = "tokamak-data";
constexpr int kRecordVersion = 1;
constexpr const char* kEvents[] = {"start", "checkpoint", "end"};

ordered_json to_object(const DatasetRecord& dataset) {
  ordered_json files = ordered_json::array();
  for (const FileFingerprint& file : dataset.files)
    files.push_back({{"path", file.path}, {"bytes", file.bytes}, {"checksum", file.checksum}});
  ordered_json object = {{"path", dataset.path},
                         {"kind", dataset.kind},
                         {"windows", dataset.share.windows},
                         {"quota", dataset.share.quota},
                         {"window_bytes", dataset.window_bytes},
                         {"files", files}};
  if (!dataset.tokens.empty()) object["tokens"] = dataset.tokens;
  return object;
}

ordered_json to_object(const DataRecord& record) {
  ordered_json datasets = ordered_json::array();
  for (const DatasetRecord& dataset : record.datasets) datasets.push_back(to_object(dataset));
  return {{"format", kFormat},
          {"version", kRecordVersion},
          {"seed", record.seed},
          {"context", record.context},
          {"datasets", datasets}};
}

// More than any run has, and few enough that no sum of them overflows.
constexpr double kMostSeconds = 2e11;  // some thousand years
constexpr int64_t kMostSteps = int64_t(1) << 38, kMostSamples = int64_t(1) << 60;

// Of tokens in a sample, and of bytes that it is made of: a product of both overflows nothing.
constexpr int64_t kMostContext = int64_t(1) << 30, kMostWindowBytes = int64_t(1) << 32;

// Of a dataset: with the most datasets that a mixture has, a sum that overflows nothing.
constexpr int64_t kMostWindows = int64_t(1) << 42;
static_assert(kMostWindows <= INT64_MAX / kMostMixtureBlock);

constexpr const char* kRecordRemedy = "the file is damaged, or of another version of the program";

DatasetRecord dataset_from(const JsonFields& fields) {
  DatasetRecord dataset{.path = fields.text("path"),
                        .kind = fields.text("kind"),
                        .share = {fields.number("windows", kMostWindows), fields.number("quota", kMostMixtureBlock)},
                        .window_bytes = fields.number("window_bytes", kMostWindowBytes),
                        .files = fingerprints_from(fields, "files"),
                        .tokens = fields.has("tokens") ? fields.text("tokens") : ""};
  if (dataset.share.windows < 1) fields.refuse("windows", "at least 1");
  if (dataset.share.quota < 1) fields.refuse("quota", "at least 1");
  return dataset;
}

void check_quotas(const DataRecord& record, std::string_view where) {
  if (int64_t sum = record.block_size(); !is_mixture_block(sum))
    user_error("[data] {}: expected quotas with a sum of {} or a larger power of two, got {}; {}", where, kMixtureBlock,
               sum, kRecordRemedy);
}

// The order of samples is that of the data, so a run cannot go on with another.
constexpr const char* kOnPurpose =
    "if that is on purpose, train on it from the beginning, with another --train.out or with --train.resume=false";

[[noreturn]] void other_setting(const std::string& began, std::string_view what, const std::string& was,
                                const std::string& is, std::string_view remedy) {
  user_error("[data] expected {} {}, with which the run in {} began, got {}; to go on with that run, {}; {}", what, was,
             began, is, remedy, kOnPurpose);
}

void require_same_dataset(const DatasetRecord& was, const DatasetRecord& is, const std::string& began) {
  if (was.files.size() != is.files.size())
    other_setting(began, fmt::format("as many files in {} as", is.path), fmt::format("the {}", was.files.size()),
                  fmt::format("{}", is.files.size()), "name the files that it had");
  for (size_t i = 0; i < was.files.size(); ++i) {
    const FileFingerprint &old = was.files[i], &now = is.files[i];
    if (old.bytes != now.bytes || old.checksum != now.checksum)
      user_error(
          "[data] expected {} to be the file that the run in {} began with ({}, {} bytes, {}), got one with {} bytes, "
          "{}: it is another one, or has changed since; to go on with that run, restore it or name the one that it "
          "had; {}",
          now.path, began, old.path, old.bytes, old.checksum, now.bytes, now.checksum, kOnPurpose);
  }
  if (was.kind != is.kind) other_setting(began, "data.path of the kind", was.kind, is.kind, "name the same data");
  if (was.share.quota != is.share.quota)
    other_setting(began, fmt::format("a weight of {} that gives", is.path),
                  fmt::format("{} samples of a block", was.share.quota), fmt::format("{}", is.share.quota),
                  "give the weights that it had");
  if (was.share.windows != is.share.windows || was.window_bytes != is.window_bytes)
    other_setting(began, fmt::format("{} to have", is.path), fmt::format("{} windows", was.share.windows),
                  fmt::format("{}", is.share.windows), "use the data and the settings that it had");
  if (!was.tokens.empty() && !is.tokens.empty() && was.tokens != is.tokens)
    other_setting(began, fmt::format("{} to give the tokens of checksum", is.path), was.tokens, is.tokens,
                  "its files are the same, so use the data.field, data.format, data.token_type and data.tokenizer that "
                  "it had");
}

}  // namespace

int64_t DataRecord::block_size() const {
  int64_t sum = 0;
  for (const DatasetRecord& dataset : datasets) sum += dataset.share.quota;
  return sum;
}

SampleOrder DataRecord::order() const {
  std::vector<MixtureShare> shares;
  for (const DatasetRecord& dataset : datasets) shares.push_back(dataset.share);
  return SampleOrder(seed, shares);
}

std::string to_json(const DataRecord& record) { return format_json(to_object(record), 2) + "\n"; }

DataRecord data_record_from_json(std::string_view text, std::string_view where) {
  JsonFields fields(text, where, kRecordRemedy);
  fields.require_format(kFormat, kRecordVersion);
  DataRecord record{.seed = uint64_t(fields.number("seed", INT64_MAX)),
                    .context = fields.number("context", kMostContext),
                    .datasets = {}};
  if (record.context < 1) fields.refuse("context", "at least 1");
  for (const JsonFields& dataset : fields.objects("datasets")) record.datasets.push_back(dataset_from(dataset));
  check_quotas(record, where);
  return record;
}

std::string order_checksum(const DataRecord& record) {
  DataRecord bare = record;
  for (DatasetRecord& dataset : bare.datasets) {
    dataset.path.clear();
    for (FileFingerprint& file : dataset.files) file.path.clear();
  }
  std::string text = format_json(to_object(bare));
  return format_checksum(checksum(std::as_bytes(std::span(text))));
}

void require_same_data(const DataRecord& was, const DataRecord& is, const std::string& began) {
  if (was.seed != is.seed)
    other_setting(began, "train.seed =", fmt::format("{}", was.seed), fmt::format("{}", is.seed), "use that seed");
  if (was.context != is.context)
    other_setting(began, "model.context =", fmt::format("{}", was.context), fmt::format("{}", is.context),
                  "use that context");
  if (was.datasets.size() != is.datasets.size())
    other_setting(began, "as many entries of data.path as", fmt::format("the {}", was.datasets.size()),
                  fmt::format("{}", is.datasets.size()), "name the data that it had");
  for (size_t i = 0; i < was.datasets.size(); ++i) require_same_dataset(was.datasets[i], is.datasets[i], began);
}

std::string format_ledger_line(const LedgerLine& line) {
  ordered_json object = {{"event", kEvents[size_t(line.event)]},
                         {"step", line.step},
                         {"sample", line.sample},
                         {"samples_per_step", line.samples_per_step},
                         {"reached", line.reached},
                         {"order", line.order},
                         {"time", line.time},
                         {"chain", line.chain}};
  return format_json(object);
}

std::string ledger_chain(std::string_view before, LedgerLine line) {
  line.chain = before;
  std::string text = format_ledger_line(line);
  return format_checksum(checksum(std::as_bytes(std::span(text))));
}

LedgerLine parse_ledger_line(std::string_view text, std::string_view where) {
  JsonFields fields(text, where, kRecordRemedy);
  auto event = std::find(std::begin(kEvents), std::end(kEvents), fields.text("event"));
  if (event == std::end(kEvents)) fields.refuse("event", "start, checkpoint or end");
  LedgerLine line{.event = LedgerLine::Event(event - std::begin(kEvents)),
                  .step = fields.number("step", kMostSteps),
                  .sample = fields.number("sample", kMostSamples),
                  .samples_per_step = fields.number("samples_per_step", kMostSamples / kMostSteps),
                  .reached = fields.number("reached", kMostSteps),
                  .order = fields.text("order"),
                  .time = fields.real("time"),
                  .chain = fields.text("chain")};
  if (!(line.time >= 0 && line.time < kMostSeconds)) fields.refuse("time", "seconds since 1970");
  if (line.samples_per_step < 1) fields.refuse("samples_per_step", "at least 1");
  if (line.reached < line.step) fields.refuse("reached", fmt::format("at least {} (`step`)", line.step));
  return line;
}

bool has_chain(const std::vector<LedgerLine>& lines, std::string_view chain) {
  return chain.empty() ||
         std::any_of(lines.begin(), lines.end(), [&](const LedgerLine& line) { return line.chain == chain; });
}

DataRecord read_data_record(const fs::path& run) {
  require_finished(run);  // of data, named by mistake
  fs::path path = run / kDataRecordFile;
  if (!fs::exists(path))
    user_error("[data] expected {} in the run folder {}, got none; name a folder that `tokamak train` made (train.out)",
               kDataRecordFile, run.string());
  return data_record_from_json(read_file(path, kLargeFile), path.string());
}

std::vector<LedgerLine> read_ledger(const fs::path& run) {
  fs::path path = run / kLedgerFile;
  if (!fs::exists(path))
    user_error("[data] expected {} in the run folder {}, got none; name a folder that `tokamak train` made (train.out)",
               kLedgerFile, run.string());
  std::string text = read_file(path, kLargeFile);
  std::vector<LedgerLine> lines;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(parse_ledger_line(std::string_view(text).substr(begin, end - begin),
                                      fmt::format("{}:{}", path.string(), lines.size() + 1)));
  return lines;
}

LedgerWriter::LedgerWriter(const fs::path& run, const DataRecord& record, bool fresh, const std::string& follows)
    : path_(run / kLedgerFile), order_(order_checksum(record)) {
  if (fresh) {
    write_file_atomic(path_, "");
  } else if (chain_ = follows; fs::exists(path_)) {
    std::string text = read_file(path_, kLargeFile);
    size_t whole = text.rfind('\n') + 1;  // npos + 1 is 0
    if (whole != text.size()) write_file_atomic(path_, std::string_view(text).substr(0, whole));
    if (std::vector<LedgerLine> lines = read_ledger(run); !lines.empty() && has_chain(lines, follows))
      chain_ = lines.back().chain;
  }
  write_file_atomic(run / kDataRecordFile, to_json(record));
  fd_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd_.is_open()) file_error("write", path_, errno);
}

void LedgerWriter::write(LedgerLine line) {
  line.order = order_;
  line.time = std::clamp(line.time, 0.0, kMostSeconds - 1);  // what a wrong clock says must not end the next start
  chain_ = line.chain = ledger_chain(chain_, line);
  std::string text = format_ledger_line(line) + "\n";
  for (size_t done = 0; done < text.size();) {
    ssize_t count = ::write(fd_.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) file_error("write", path_, errno);
    done += size_t(count);
  }
  if (::fdatasync(fd_.get()) != 0) file_error("sync", path_, errno);
}

}  // namespace tokamak
