#include "data/passed_over.h"

#include <fmt/ranges.h>

#include <optional>
#include <vector>

#include "base/error.h"
#include "data/open_source.h"
#include "data/sources/content.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr size_t kShownNames = 8;

/// What a file holds; nothing if it cannot be read.
std::optional<Content> content_of(const fs::path& path) {
  try {
    ByteBuffer buffer(open_bytes(path, {}));
    return look_at(buffer);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace

std::string ending_of(const fs::path& path) {
  std::string ending = path.extension().string();
  return ending.empty() ? "without an ending" : ending;
}

std::string format_counts(const std::map<std::string, int64_t>& counts) {
  std::vector<std::string> words;
  for (const auto& [kind, count] : counts) words.push_back(fmt::format("{} {}", count, kind));
  if (words.size() > kShownNames) words.resize(kShownNames), words.back() = "...";
  return fmt::format("{}", fmt::join(words, ", "));
}

void PassedOver::add_file(const fs::path& path) {
  std::string ending = ending_of(path);
  add(ending);
  examples_.try_emplace(ending, path);
}

int64_t PassedOver::total() const {
  int64_t total = 0;
  for (const auto& [kind, count] : counts_) total += count;
  return total;
}

// A pattern is offered for what is text, and nothing else.
std::string PassedOver::describe(const std::string& folder) const {
  if (counts_.empty()) return "";
  std::string text =
      fmt::format("{}: passed over {} file{}: {}", folder, total(), total() == 1 ? "" : "s", format_counts(counts_));
  std::string pattern;
  size_t looked = 0;
  for (const auto& [ending, path] : examples_) {
    if (++looked > kShownNames) break;
    std::optional<Content> content = content_of(path);
    if (content && content->form == Content::Form::kOther)
      text += fmt::format("; {} is {}: {}", path.string(), content->what, content->advice);
    else if (content && path.has_extension() && pattern.empty())
      pattern = (fs::path(folder) / "**" / ("*" + ending)).string();
  }
  if (!pattern.empty()) text += fmt::format("; a pattern takes more, such as '{}'", pattern);
  return text;
}

}  // namespace tokamak
