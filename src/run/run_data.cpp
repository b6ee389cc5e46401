#include "run/run_data.h"

#include "run/initial_model.h"

#include "base/checksum.h"
#include "base/error.h"
#include "checkpoint/hugging_face_files.h"
#include "checkpoint/run_folder.h"
#include "config/config.h"
#include "data/check_targets.h"
#include "data/check_tokens.h"
#include "data/data_path.h"
#include "data/data_tokenizer.h"
#include "data/marked_tokens.h"
#include "data/open_consistently.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace tokamak {
namespace {

using Event = LedgerLine::Event;

std::string fingerprint_of(const Tokenizer* tokenizer) { return tokenizer ? tokenizer_fingerprint(*tokenizer) : ""; }

std::shared_ptr<const Tokenizer> load_checked_tokenizer(const RunConfig& config, const FoundCheckpoint* found) {
  for (const DataPath& path : all_data_paths(config.data)) require_exists(path.path);
  std::shared_ptr<const Tokenizer> tokenizer = load_data_tokenizer(config.data);
  if (!tokenizer && found) tokenizer = load_run_tokenizer(run_folder_of(found->path), config.data);
  if (!found) tokenizer = tokenizer_for_model(config, std::move(tokenizer));
  // A run that began without a tokenizer may get one later.
  if (found && !found->state.tokenizer.empty() && found->state.tokenizer != fingerprint_of(tokenizer.get()))
    user_error(
        "[train] expected the vocabulary that {} was trained with, got {} in {}; use the same data folder, or another "
        "--train.out",
        found->path.string(), tokenizer ? "another one" : "none",
        !config.data.tokenizer.empty() ? config.data.tokenizer : config.data.path.front());
  if (!tokenizer && config.train.sample_every > 0)
    user_error(
        "[train] expected a tokenizer for samples of text (train.sample_every = {}), got data without one; name the "
        "folder of its files with --data.tokenizer, or set --train.sample_every=0",
        config.train.sample_every);
  return tokenizer;
}

std::optional<DataRecord> record_of(const FoundCheckpoint* found) {
  if (!found || found->state.data_json.empty()) return std::nullopt;
  return data_record_from_json(found->state.data_json, (found->path / "state.json").string());
}

std::shared_ptr<const Corpus> open_corpus(const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer,
                                          const std::optional<DataRecord>& began, bool verify) {
  return std::make_shared<const Corpus>(
      open_training_data(config, std::move(tokenizer), began ? &*began : nullptr, verify));
}

std::shared_ptr<const Corpus> open_validation(const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer,
                                              bool verify) {
  if (config.train.eval_every == 0) return nullptr;
  std::optional<Corpus> corpus = open_validation_data(config, std::move(tokenizer), verify);
  return corpus ? std::make_shared<const Corpus>(std::move(*corpus)) : nullptr;
}

DataRecord check_record(DataRecord record, const std::optional<DataRecord>& began, const std::string& out) {
  if (!began) return record;
  require_same_data(*began, record, out);
  // The lines of an older ledger are of a record without them.
  for (size_t i = 0; i < record.datasets.size(); ++i)
    if (began->datasets[i].tokens.empty()) record.datasets[i].tokens.clear();
  return record;
}

// What a file holds is its name here: a copy is as bad.
std::string shared_files_warning(const DataRecord& training, const Corpus::Datasets& validation) {
  std::set<std::pair<int64_t, std::string>> trained;
  for (const DatasetRecord& dataset : training.datasets)
    for (const FileFingerprint& file : dataset.files) trained.emplace(file.bytes, file.checksum);
  std::string first;
  int64_t count = 0;
  for (const auto& dataset : validation)
    for (const FileFingerprint& file : dataset->fingerprints())
      if (trained.contains({file.bytes, file.checksum}) && ++count == 1) first = file.path;
  if (count == 0) return "";
  return fmt::format(
      "warning: {}{} is in data.path as well as in data.val_path: the validation loss is of what the run is trained on",
      first, count > 1 ? fmt::format(" (and {} more)", count - 1) : "");
}

// Of its files, wherever they lie; where nothing is validated now, that of the last time.
std::string checksum_of(const Corpus* validation, const FoundCheckpoint* found) {
  if (!validation) return found ? found->state.validation : "";
  std::string text;
  for (const auto& dataset : validation->datasets())
    for (const FileFingerprint& file : dataset->fingerprints())
      text += fmt::format("{} {}\n", file.bytes, file.checksum);
  return format_checksum(checksum(std::as_bytes(std::span(text))));
}

// Samples do not depend on it, so a run may go on.
std::string other_validation_warning(const FoundCheckpoint* found, const std::string& is) {
  const std::string was = found ? found->state.validation : "";
  if (was.empty() || is.empty() || was == is) return "";
  return fmt::format(
      "warning: the validation data is not that of step {}: validation losses before and after it cannot be compared, "
      "and the best of them may be of either; if that is not on purpose, restore the files or name those that it had "
      "with --data.val_path",
      found->state.step);
}

// Two steps' batches, and one more for each thread that may be slower than the others.
LoaderOptions loader_options(const ResolvedRun& run, const Corpus& corpus, const Tokenizer* tokenizer) {
  return {.batch = run.batch,
          .vocab_size = run.asked.model.vocab,
          .end_of_text = mask_token(run.asked, corpus, tokenizer),
          .workers = run.asked.data.workers,
          .prefetch = 2 * run.micro_batches + run.asked.data.workers};
}

}  // namespace

RunData::RunData(const ResolvedRun& run, const FoundCheckpoint* found, bool records)
    : config_(run.asked), records_(records),
      opened_(open_consistently(config_.data, [&] { return open(config_, found, true); })),
      record_(check_record(opened_.training->record(), record_of(found), config_.train.out)),
      record_json_(to_json(record_)), fingerprint_(fingerprint_of(tokenizer())),
      validation_(checksum_of(opened_.validation.get(), found)),
      validation_warning_(other_validation_warning(found, validation_)), follows_(found ? found->state.ledger : ""),
      samples_per_step_(run.micro_batches * run.batch),
      loader_(opened_.training, loader_options(run, *opened_.training, tokenizer())) {
  if (found) loader_.seek(found->state.data_position);
}

std::vector<int32_t> RunData::sample_prompt() const {
  constexpr int64_t kLooked = 64, kEnough = 2;  // windows of each dataset, and ends of documents in them
  int32_t end =
      find_end_of_text(config_, *opened_.training, opened_.tokenizer.get()).value_or(opened_.tokenizer->end_of_text());
  int64_t found = 0;
  std::vector<int32_t> window(size_t(opened_.training->context() + 1));
  for (const auto& dataset : opened_.training->datasets()) {
    auto reader = dataset->reader();
    int64_t windows = dataset->windows(), looked = std::min(kLooked, windows);
    for (int64_t i = 0; i < looked; ++i) {
      reader->read(i * windows / looked, window);
      remove_marks(window);
      found += std::count(window.begin(), window.end() - 1, end);
    }
  }
  std::vector<int32_t> line_break = opened_.tokenizer->encode("\n");
  return found >= kEnough || line_break.empty() ? std::vector{end} : line_break;
}

std::vector<std::string> RunData::notes() const {
  std::vector<std::string> notes = checksum_warnings(config_.data);
  for (const auto& corpus : {opened_.training, opened_.validation})
    if (corpus) notes.insert(notes.end(), corpus->notes().begin(), corpus->notes().end());
  if (opened_.validation && !config_.data.val_path.empty())
    if (std::string warning = shared_files_warning(record_, opened_.validation->datasets()); !warning.empty())
      notes.push_back(warning);
  if (!validation_warning_.empty()) notes.push_back(validation_warning_);
  return notes;
}

int64_t RunData::check(const RunConfig& config, const FoundCheckpoint* found) {
  Opened opened = open_consistently(config.data, [&] { return open(config, found, false); });
  check_record(opened.training->record(), record_of(found), config.train.out);
  if (!opened.validation && (config.train.patience > 0 || config.train.keep_best))
    user_error(
        "[{}] expected data for validations, which it goes by, got none longer than model.context; name some with "
        "--data.val_path",
        config.train.patience > 0 ? "train.patience" : "train.keep_best");
  for (const auto& corpus : {opened.training, opened.validation}) {
    if (!corpus) continue;
    check_some_tokens(*corpus, config.model.vocab);
    require_some_targets(*corpus, mask_token(config, *corpus, opened.tokenizer.get()));
  }
  return opened.training->windows();
}

RunData::Opened RunData::open(const RunConfig& config, const FoundCheckpoint* found, bool verify) {
  std::shared_ptr<const Tokenizer> tokenizer = load_checked_tokenizer(config, found);
  return {tokenizer, open_corpus(config, tokenizer, record_of(found), verify),
          open_validation(config, tokenizer, verify)};
}

void RunData::describe(CheckpointState& state, int64_t position) const {
  state.data_position = position;
  state.data_json = record_json_;
  state.validation = validation_;
  state.tokenizer = fingerprint_;
  if (ledger_) state.ledger = ledger_->chain();
}

const std::map<std::string, std::string>& RunData::files_for_others() const {
  if (!for_others_) for_others_ = checkpoint_files_for_others(config_.model, tokenizer());
  return *for_others_;
}

void RunData::started(int64_t step, int64_t sample, int64_t reached) {
  if (records_) ledger_ = std::make_unique<LedgerWriter>(config_.train.out, record_, step == 0, follows_);
  write(Event::kStart, step, sample, reached);
}

void RunData::saved(int64_t step, int64_t sample) { write(Event::kCheckpoint, step, sample, step); }

void RunData::ended(int64_t step, int64_t sample) { write(Event::kEnd, step, sample, step); }

void RunData::write(Event event, int64_t step, int64_t sample, int64_t reached) {
  if (!ledger_) return;
  double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  ledger_->write({.event = event,
                  .step = step,
                  .sample = sample,
                  .samples_per_step = samples_per_step_,
                  .reached = std::max(reached, step),
                  .order = {},
                  .time = now,
                  .chain = {}});
}

}  // namespace tokamak
