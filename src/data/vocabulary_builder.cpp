#include "data/vocabulary_builder.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "data/byte_alphabet.h"

namespace tokamak {

namespace {

// Far above any real vocabulary: guards against a damaged file that would allocate without bound.
constexpr int64_t kMaxVocabulary = int64_t(1) << 21;
constexpr size_t kMaxReserved = size_t(1) << 16;  // ids that no token has
constexpr size_t kMaxAddedBytes = 4096;

}  // namespace

void VocabularyBuilder::store(std::string_view spelling, int64_t id) {
  if (id < 0 || id >= kMaxVocabulary)
    user_error("[tokenizer] {}: expected token ids from 0 to {}, got {} for '{}'; the file is damaged: fetch it again",
               name_, kMaxVocabulary - 1, id, spelling);
  if (size_t(id) >= spellings_.size()) spellings_.resize(size_t(id) + 1);
  std::string& known = spellings_[size_t(id)];
  if (!known.empty() && known != spelling)
    user_error(
        "[tokenizer] {}: expected one token for each id, got '{}' and '{}' for id {}; the file is damaged: fetch "
        "it again",
        name_, known, spelling, id);
  known = spelling;
}

void VocabularyBuilder::add_token(std::string_view spelling, int64_t id) {
  store(spelling, id);
  auto [known, is_new] = ids_.emplace(spelling, int32_t(id));
  if (!is_new && known->second != id)
    user_error(
        "[tokenizer] {}: expected each token once, got '{}' with the ids {} and {}; the file is damaged: fetch it "
        "again",
        name_, spelling, known->second, id);
}

void VocabularyBuilder::add_added(std::string_view text, int64_t id, AddedToken token) {
  if (text.empty() || text.size() > kMaxAddedBytes)
    user_error(
        "[tokenizer] {}: expected added tokens of 1 to {} bytes, got {} with the id {}; repair it, or leave it out",
        name_, kMaxAddedBytes, text.size(), id);
  auto [known, is_new] = added_ids_.emplace(text, int32_t(id));
  if (!is_new)
    user_error("[tokenizer] {}: expected each added token once, got '{}' with the ids {} and {}; leave one out", name_,
               text, known->second, id);
  store(text, id);
  token.id = int32_t(id);
  added_.push_back(token);
}

int32_t VocabularyBuilder::find_token(std::string_view spelling) const {
  auto found = ids_.find(spelling);
  return found == ids_.end() ? -1 : found->second;
}

int32_t VocabularyBuilder::id_of(std::string_view spelling, std::string_view left, std::string_view right) const {
  int32_t found = find_token(spelling);
  if (found < 0)
    user_error(
        "[tokenizer] {}: expected a token '{}' for the merge '{} {}', got none; the two parts of the vocabulary do "
        "not belong together",
        name_, spelling, left, right);
  return found;
}

void VocabularyBuilder::add_merge(std::string_view pair) {
  size_t space = pair.find(' ');
  if (space == pair.npos || space == 0 || space + 1 == pair.size() || pair.find(' ', space + 1) != pair.npos)
    user_error("[tokenizer] {}: expected merges of two tokens with a space between, got '{}' as merge {}", name_, pair,
               merges_.size() + 1);
  add_merge(pair.substr(0, space), pair.substr(space + 1));
}

void VocabularyBuilder::add_merge(std::string_view left, std::string_view right) {
  joined_.assign(left).append(right);
  merges_.push_back({id_of(left, left, right), id_of(right, left, right), id_of(joined_, left, right)});
}

/// Whether a token can be a part of words.
bool VocabularyBuilder::is_ordinary(size_t id, bool made, const AddedToken* added) const {
  const std::string& spelling = spellings_[id];
  if (find_token(spelling) != int32_t(id)) return false;
  std::optional<std::string> bytes = unspell_bytes(spelling);
  if (!bytes) return false;
  bool is_needed = made || bytes->size() == 1;
  if (!is_needed && (!whole_words_ || (added && added->special))) return false;
  if (added && *bytes != spelling)
    user_error(
        "[tokenizer] {}: expected added tokens that are text as it is, got '{}' with the id {}, which is how the "
        "vocabulary spells other bytes; leave it out",
        name_, spelling, id);
  return true;
}

void VocabularyBuilder::reserve_free_ids() {
  int32_t last_token = -1;
  for (const auto& [spelling, id] : ids_) last_token = std::max(last_token, id);
  size_t reserved = size_t(std::count(spellings_.begin(), spellings_.end(), ""));
  if (reserved > kMaxReserved)
    user_error(
        "[tokenizer] {}: expected tokens for the ids up to {}, got none for {} of them; the file is damaged: fetch "
        "it again",
        name_, spellings_.size() - 1, reserved);
  for (size_t id = 0; id < spellings_.size(); ++id) {
    if (!spellings_[id].empty()) continue;
    if (int32_t(id) <= last_token)
      user_error("[tokenizer] {}: expected a token for each id from 0 to {}, got none for id {}", name_,
                 spellings_.size() - 1, id);
    add_special(fmt::format("<|reserved_{}|>", id), int64_t(id));
  }
}

Vocabulary VocabularyBuilder::build() {
  reserve_free_ids();
  Vocabulary vocabulary;
  std::vector<bool> made(spellings_.size());
  for (const Merge& merge : merges_) made[size_t(merge.result)] = true;
  std::vector<const AddedToken*> added(spellings_.size());
  for (const AddedToken& token : added_) added[size_t(token.id)] = &token;
  for (size_t id = 0; id < spellings_.size(); ++id) {
    bool ordinary = is_ordinary(id, made[id], added[id]);
    if (!ordinary) vocabulary.special.push_back(int32_t(id));
    vocabulary.tokens.push_back(ordinary ? *unspell_bytes(spellings_[id]) : spellings_[id]);
  }
  vocabulary.merges = std::move(merges_);
  vocabulary.added = std::move(added_);
  vocabulary.whole_words = whole_words_;
  return vocabulary;
}

}  // namespace tokamak
