#include "data/prepare.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "base/ordered_pipeline.h"
#include "base/parallel.h"
#include "data/conversation.h"
#include "data/hugging_face_vocabulary.h"
#include "data/passed_over.h"
#include "data/prepare_cut.h"
#include "data/prepare_encoder.h"
#include "data/prepare_folder.h"
#include "data/prepare_journal.h"
#include "data/prepare_names.h"
#include "data/prepare_pipes.h"
#include "data/prepare_shards.h"
#include "data/prepare_words.h"
#include "data/source_notes.h"
#include "data/split_names.h"
#include "data/tokenizer_files.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

void check_options(const PrepareOptions& options) {
  if (options.inputs.empty())
    user_error("[prepare] expected a file, a folder, a pattern or - for standard input, got nothing; name one");
  if (!(options.val_fraction >= 0 && options.val_fraction < 1))
    user_error("[prepare] expected a validation fraction of at least 0 and below 1, got {}; the usual is 0.05",
               options.val_fraction);
  int64_t most = std::numeric_limits<int32_t>::max();
  if (options.shard_tokens < 1 || options.shard_tokens > most)
    user_error("[prepare] expected 1 to {} tokens in a shard, got {}; the usual is 100000000", most,
               options.shard_tokens);
  if (options.vocab.empty()) check_vocab_size(options.vocab_size);
}

/// Nothing is left out or zero.
PrepareOptions complete(PrepareOptions options) {
  if (options.threads < 1) options.threads = num_threads();
  options.sources.part_bytes = std::min(options.sources.part_bytes, options.batch_bytes);
  options.sources.notes = std::make_shared<SourceNotes>();
  if (options.skip_bad) options.sources.bad_lines = std::make_shared<std::atomic<int64_t>>(0);
  return options;
}

PrepareHooks complete(PrepareHooks hooks) {
  if (!hooks.progress) hooks.progress = [](const PrepareProgress&) {};
  if (!hooks.note) hooks.note = [](const std::string&) {};
  if (!hooks.stop) hooks.stop = [] { return false; };
  return hooks;
}

std::vector<fs::path> find_inputs(const PrepareOptions& options, const PrepareHooks& hooks) {
  std::vector<fs::path> files;
  for (const std::string& input : options.inputs) {
    PassedOver passed_over;
    std::vector<fs::path> found = find_files(input, options.sources, &passed_over);
    if (std::string note = passed_over.describe(input); !note.empty()) hooks.note(note);
    std::erase_if(found, [&](const fs::path& file) { return is_output_of_prepare(file, options.out); });
    if (found.empty())
      user_error("[prepare] expected input in {}, got only what `prepare` itself wrote into {}; name another --out",
                 input, options.out.string());
    if (!options.split.empty())
      if (size_t others = keep_split(found, options.split, input); others > 0)
        hooks.note(fmt::format("left out {} file{} of {} that {} not of {}", others, others == 1 ? "" : "s", input,
                               others == 1 ? "is" : "are", options.split));
    files.insert(files.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  }
  if (std::string warning = pooled_splits_warning(files); !warning.empty()) hooks.note(warning);
  return files;
}

/// One call of prepare().
class Preparation {
 public:
  Preparation(const PrepareOptions& options, const PrepareHooks& hooks)
      : options_(complete(options)), hooks_(complete(hooks)), inputs_(find_inputs(options_, hooks_)) {
    options_.sources.stop = hooks_.stop;
    if (!options_.chat.empty()) read_conversations();
    look_at_inputs();
    if (!options_.vocab.empty() && !tokenizer_) tokenizer_.emplace(load_tokenizer(options_.vocab));
    make_plan();
    folder_.emplace(options_.out);
  }

  TokenShardIndex run() {
    if (finish_earlier()) return read_token_shard_index(options_.out, IndexSources::kRead);
    try {
      find_place();
      make_tokenizer();
      PrepareShards shards(folder_->path(), journal_, *tokenizer_, options_.shard_tokens, !options_.chat.empty());
      encode(shards);
      check_inputs();
      TokenShardIndex index = cut(shards);
      publish(journal_);
      folder_->remove();
      return index;
    } catch (const UserError& error) {
      std::string kept = what_is_kept();
      if (kept.empty()) folder_->remove();
      throw UserError(error.what() + kept);
    }
  }

 private:
  void read_conversations();
  void look_at_inputs() const;
  void make_plan();
  bool finish_earlier();
  void find_place();
  std::string why_not(const std::optional<PreparePlan>& plan, const std::optional<PrepareJournal>& journal);
  std::string damage(const PrepareJournal& journal);
  void make_tokenizer();
  void encode(PrepareShards& shards);
  void check_inputs();
  TokenShardIndex cut(PrepareShards& shards);
  void publish(const PrepareJournal& journal) {
    folder_->publish(journal, [&] { hooks_.progress({"moving the files to their places", 0, 0}); });
  }
  void begin_anew(const std::string& reason) {
    hooks_.note(fmt::format("not going on with the earlier run in {}, as {}; beginning anew", folder_->path().string(),
                            reason));
    folder_->clear();
  }
  std::string what_is_kept() const;

  void progress(std::string_view phase, int64_t done) { hooks_.progress({phase, done, total_bytes_}); }
  void stop_if_wanted() const {
    if (hooks_.stop()) user_error("[prepare] stopped before the end");
  }

  PrepareOptions options_;
  PrepareHooks hooks_;
  std::vector<fs::path> inputs_;
  std::optional<Tokenizer> tokenizer_;
  PreparePlan plan_;
  bool repeatable_ = true;   // all inputs can be read again from the beginning
  int64_t total_bytes_ = 0;  // of the inputs; 0: not known
  std::optional<PrepareFolder> folder_;
  PrepareJournal journal_;
  bool has_tokenizer_ = false;  // in the folder of unfinished work
};

/// A template's markers are the tokenizer's, so that of a model is needed.
void Preparation::read_conversations() {
  if (options_.vocab.empty())
    user_error(
        "[prepare] expected the tokenizer of a model, as --chat needs its markers, got none; name it with --vocab");
  for (const fs::path& file : inputs_)
    if (std::string_view format = format_of(file, options_.sources).name; format != "jsonl" && format != "webdataset")
      user_error("[prepare] {}: expected JSON lines of conversations, as --chat says, got {}; prepare it by itself",
                 file.string(), format);
  tokenizer_.emplace(load_tokenizer(options_.vocab));
  const Vocabulary& vocabulary = tokenizer_->vocabulary();
  options_.sources.conversations = std::make_shared<const ConversationReader>(
      find_chat_template(options_.chat, options_.vocab, vocabulary), marker_texts(vocabulary),
      vocabulary.tokens[size_t(tokenizer_->end_of_text())]);
}

/// What is refused is refused before any work, and what is doubtful is told.
void Preparation::look_at_inputs() const {
  int64_t looked = 0;
  for (const fs::path& file : inputs_) {
    hooks_.progress({"looking at the input", looked++, int64_t(inputs_.size()), true});
    look_ahead(file, options_.sources);
    tell_notes(options_.sources, hooks_.note);
    stop_if_wanted();
  }
}

void Preparation::make_plan() {
  auto number = [](auto value) { return fmt::format("{}", value); };
  plan_.options = {{"--format", options_.sources.format},
                   {"--field", options_.sources.text_field},
                   {"--token-type", options_.sources.token_type},
                   {"--separator", options_.sources.separator},
                   {"--members", fmt::format("{}", fmt::join(options_.sources.members, ","))},
                   {"--chat", options_.chat},
                   {"--skip-bad", options_.skip_bad ? "true" : "false"},
                   {"--val-fraction", number(options_.val_fraction)},
                   {"--val-split", options_.val_split},
                   {"--val-seed", number(options_.val_seed)},
                   {"--shard-tokens", number(options_.shard_tokens)},
                   {"the size of batches", number(options_.batch_bytes)}};
  if (tokenizer_) {
    std::string text = format_hugging_face_vocabulary(tokenizer_->vocabulary());
    plan_.options["the vocabulary"] = format_checksum(checksum(std::as_bytes(std::span(text))));
    if (options_.chat == "own")
      for (const char* file : kChatTemplateFiles)
        if (fs::exists(options_.vocab / file)) plan_.options[file] = checksum_file(options_.vocab / file);
  } else {
    plan_.options["the vocabulary"] = "a trained one";
    plan_.options["--vocab-size"] = number(options_.vocab_size);
    plan_.options["--vocab-bytes"] = number(options_.vocab_bytes);
    plan_.options["--vocab-words"] = number(options_.vocab_words);
  }
  for (const fs::path& file : inputs_) {
    hooks_.progress({"looking at the input", int64_t(plan_.inputs.size()), int64_t(inputs_.size()), true});
    plan_.inputs.push_back(plan_input(file));
    repeatable_ = repeatable_ && can_be_read_again(file);
    total_bytes_ += input_size(file);
  }
  for (const fs::path& file : inputs_)  // what tells where the documents of its tokens begin
    if (format_of(file, options_.sources).name == "megatron")
      plan_.inputs.push_back(plan_input(fs::path(file).replace_extension(".idx")));
  if (!repeatable_) total_bytes_ = 0;
}

/// An earlier run may have been interrupted while its files moved to their places. True if its result is ours.
bool Preparation::finish_earlier() {
  auto journal = read_journal(folder_->path());
  if (!journal || journal->moves.empty()) return false;
  auto plan = read_plan(folder_->path());
  if (std::string found = damage(*journal); !found.empty()) {
    begin_anew(found);
    return false;
  }
  publish(*journal);
  folder_->clear();
  if (!plan || !repeatable_ || !plan_difference(*plan, plan_).empty()) return false;
  folder_->remove();
  hooks_.note("the earlier run was complete but for the names of its files; they have them now");
  return true;
}

/// Goes on from what an earlier run has left, or begins anew.
void Preparation::find_place() {
  auto plan = read_plan(folder_->path());
  auto journal = read_journal(folder_->path());
  if (std::string reason = why_not(plan, journal); !reason.empty()) {
    begin_anew(reason);
  } else if (journal) {
    journal_ = *journal;
    has_tokenizer_ = true;
    if (!journal_.shards.empty())
      hooks_.note(fmt::format("going on after the {} complete shard{} of an earlier run", journal_.shards.size(),
                              journal_.shards.size() == 1 ? "" : "s"));
    return;
  } else {
    folder_->clear();
  }
  write_plan(plan_, folder_->path());
}

/// Why there is no going on with an earlier run, in words; empty if there is, or if there was none.
std::string Preparation::why_not(const std::optional<PreparePlan>& plan, const std::optional<PrepareJournal>& journal) {
  if (!has_journal(folder_->path())) return "";
  if (!plan || !journal) return "its notes of what it did are damaged or of another version";
  if (!repeatable_) return "the input cannot be read a second time";
  if (std::string difference = plan_difference(*plan, plan_); !difference.empty()) return difference;
  auto files = int64_t(inputs_.size());
  if (journal->place.file >= files || journal->files.size > files)
    return fmt::format("its notes of what it did are of more than the {} input file{}", files, files == 1 ? "" : "s");
  return damage(*journal);
}

/// What of an earlier run's files is not as its journal says, in words; empty if all is.
std::string Preparation::damage(const PrepareJournal& journal) {
  hooks_.progress({"checking what the earlier run has kept", 0, 0});
  auto pause = [&] { stop_if_wanted(); };
  fs::path damaged =
      journal.moves.empty() ? find_damage(journal, folder_->path(), pause) : folder_->find_damage(journal, pause);
  return damaged.empty() ? "" : fmt::format("{} is damaged or gone", damaged.string());
}

void Preparation::make_tokenizer() {
  fs::path place = folder_->path() / unfinished::kTokenizer;
  if (has_tokenizer_) {
    if (!tokenizer_) tokenizer_.emplace(load_tokenizer(place));
    return;
  }
  if (!tokenizer_) {
    if (!repeatable_) inputs_ = store_pipes(inputs_, options_, folder_->path() / unfinished::kPipes, hooks_);
    WordCounts words = count_words(inputs_, options_, hooks_);
    hooks_.progress({"training the tokenizer", 0, 0});
    tokenizer_.emplace(train_bpe(words, options_.vocab_size));
  }
  make_folder(place);
  save_tokenizer(tokenizer_->vocabulary(), place);
  for (const auto& entry : fs::directory_iterator(place))
    journal_.tokenizer.push_back({entry.path().filename().string(), checksum_file(entry.path())});
  std::ranges::sort(journal_.tokenizer, {}, &FileChecksum::file);
  write_journal(journal_, folder_->path());
  has_tokenizer_ = true;
}

void Preparation::encode(PrepareShards& shards) {
  PrepareReader reader(
      inputs_,
      {.sources = options_.sources, .separator = tokenizer_->end_of_text(), .batch_bytes = options_.batch_bytes},
      journal_.place);
  if (options_.skip_bad) *options_.sources.bad_lines = 0;  // training a tokenizer has counted them, too
  options_.sources.notes->begin_again();
  std::vector<PrepareEncoder> encoders(size_t(options_.threads),
                                       PrepareEncoder(*tokenizer_, inputs_, !options_.chat.empty()));
  OrderedPipeline<PrepareBatch> pipeline(
      options_.threads, [&](PrepareBatch& batch) { return reader.fill(batch); },
      [&](PrepareBatch& batch, int thread) { encoders[size_t(thread)].encode(batch); });
  for (PrepareBatch batch; pipeline.next(batch);) {
    shards.append(batch);
    tell_notes(options_.sources, hooks_.note);
    progress("encoding", batch.bytes_read);
    stop_if_wanted();
  }
  shards.finish();
  for (const std::string& total : options_.sources.notes->totals()) hooks_.note(total);
  if (int64_t bad = options_.skip_bad ? options_.sources.bad_lines->load() : 0; bad > 0)
    hooks_.note(fmt::format("skipped {} bad line{} of JSONL or CSV", bad, bad == 1 ? "" : "s"));
  if (shards.tokens() == 0)
    user_error(
        "[prepare] expected text in the documents, got only empty ones; check the input, the name of the "
        "field and, of archives, --members");
}

/// What was read must be what the plan says, or going on later would mix two inputs.
void Preparation::check_inputs() {
  for (const PreparePlan::Input& input : plan_.inputs)
    if (plan_input(input.file.path) != input)
      user_error(
          "[prepare] expected input that stays as it is, but {} has changed since the start; run the same command "
          "again",
          input.file.path);
}

TokenShardIndex Preparation::cut(PrepareShards& shards) {
  TokenShardIndex index;
  index.vocab_size = tokenizer_->vocab_size();
  index.end_of_text = tokenizer_->end_of_text();
  index.tokenizer = journal_.tokenizer;
  journal_ = shards.journal();
  journal_.moves = cut_validation(folder_->path(), shards, options_, plan_.inputs, index, [&] {
    hooks_.progress({"cutting off the validation split", 0, 0});
    stop_if_wanted();
  });
  for (const FileChecksum& file : journal_.tokenizer)
    journal_.moves.push_back({fs::path(unfinished::kTokenizer) / file.file, file.file, file.checksum});
  write_token_shard_index(index, folder_->path());
  journal_.moves.push_back({kIndexFile, kIndexFile, checksum_file(folder_->path() / kIndexFile)});
  write_journal(journal_, folder_->path());
  return index;
}

/// What the next run can use, as a sentence for the end of a message; empty if nothing.
std::string Preparation::what_is_kept() const {
  auto journal = read_journal(folder_->path());
  if (!journal || !repeatable_) return "";
  std::string where = folder_->path().string();
  if (size_t count = journal->shards.size(); count > 0)
    return fmt::format("\n  The same command goes on from here: {} complete shard{} of tokens {} kept in {}.", count,
                       count == 1 ? "" : "s", count == 1 ? "is" : "are", where);
  if (options_.vocab.empty())
    return fmt::format("\n  The same command goes on from here: the trained tokenizer is kept in {}.", where);
  return "";
}

}  // namespace

int64_t split_point(int64_t total, std::span<const int64_t> starts, double val_fraction) {
  int64_t val = int64_t(std::llround(double(total) * val_fraction));
  if (val == 0) return total;
  int64_t mark = total - val;
  auto after = std::lower_bound(starts.begin(), starts.end(), mark);
  int64_t best = mark, distance = val / 2 + 1;
  auto consider = [&](int64_t start) {
    if (start > 0 && std::abs(start - mark) < distance) {
      best = start;
      distance = std::abs(start - mark);
    }
  };
  if (after != starts.end()) consider(*after);
  if (after != starts.begin()) consider(*(after - 1));
  return best;
}

TokenShardIndex prepare(const PrepareOptions& options, const PrepareHooks& hooks) {
  check_options(options);
  return Preparation(options, hooks).run();
}

}  // namespace tokamak
