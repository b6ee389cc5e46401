#include "evaluate/examples.h"

#include "base/error.h"
#include "base/random.h"

#include <algorithm>

namespace tokamak {
namespace {

// `count` numbers below `all`, all different and none of them `but`.
std::vector<size_t> draw(size_t but, size_t all, size_t count) {
  constexpr uint64_t kSeed = 1234;
  std::vector<size_t> drawn;
  for (uint64_t i = 0; drawn.size() < count; ++i) {
    size_t one = philox4x32(kSeed, i, but)[0] % all;
    if (one != but && std::ranges::find(drawn, one) == drawn.end()) drawn.push_back(one);
  }
  return drawn;
}

std::string solved(const Question& question) {
  const AskedText& right = question.texts[size_t(question.right)];
  return right.context + right.between + right.continuation;
}

}  // namespace

std::vector<Question> with_examples(const std::vector<Question>& all, size_t asked, const TaskSpec& spec) {
  auto shots = size_t(spec.shots);
  if (all.size() <= shots)
    user_error("[eval] {}: expected more than {} questions, as {} others stand before each, got {}; ask for fewer",
               spec.file.string(), shots, shots, all.size());
  std::vector<Question> questions(all.begin(), all.begin() + int64_t(std::min(asked, all.size())));
  for (size_t i = 0; i < questions.size(); ++i) {
    std::string before;
    for (size_t one : draw(i, all.size(), shots)) before += solved(all[one]) + spec.delimiter;
    for (AskedText& text : questions[i].texts) text.context = before + text.context;
  }
  return questions;
}

}  // namespace tokamak
