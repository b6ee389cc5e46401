// What the scores of a task's requests mean.
#include "evaluate/task.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

constexpr const char *kAccuracy = "accuracy", *kAccuracyBytes = "accuracy_bytes", *kCentred = "centred",
                     *kCentredBytes = "centred_bytes";

// Of so many answers that are right or wrong.
Metric share(const char* name, int64_t right, int64_t count) {
  double value = double(right) / double(count);
  return {name, value, count > 1 ? std::sqrt(value * (1 - value) / double(count - 1)) : 0};
}

Metric centred(const char* name, double accuracy, double chance) { return {name, (accuracy - chance) / (1 - chance)}; }

double tokens_of(const Task& task) {
  double tokens = 0;
  for (const Continuation& request : task.requests) tokens += double(request.tokens.size());
  return tokens;
}

double sum_of(std::span<const Score> scores) {
  double sum = 0;
  for (const Score& score : scores) sum += score.log_likelihood;
  return sum;
}

std::vector<Metric> judge_choices(const Task& task, std::span<const Score> scores) {
  int64_t plain = 0, by_bytes = 0, count = int64_t(task.questions.size());
  double chance = 0;
  for (const Question& question : task.questions) {
    Chosen chosen = choose(question, scores.first(question.texts.size()));
    scores = scores.subspan(question.texts.size());
    plain += int64_t(chosen.plain) == question.right;
    by_bytes += int64_t(chosen.by_bytes) == question.right;
    chance += 1 / double(question.texts.size()) / double(count);
  }
  Metric accuracy = share(kAccuracy, plain, count), bytes = share(kAccuracyBytes, by_bytes, count);
  return {accuracy, bytes, centred(kCentred, accuracy.value, chance), centred(kCentredBytes, bytes.value, chance)};
}

// Perplexity is that of whole completions, as lm-evaluation-harness has LAMBADA's; the loss is of their tokens.
std::vector<Metric> judge_completions(const Task& task, std::span<const Score> scores) {
  int64_t right = std::count_if(scores.begin(), scores.end(), [](const Score& score) { return score.is_greedy; });
  double sum = sum_of(scores);
  return {share(kAccuracy, right, int64_t(scores.size())),
          {"perplexity", std::exp(-sum / double(scores.size()))},
          {"loss", -sum / tokens_of(task)}};
}

std::vector<Metric> judge_text(const Task& task, std::span<const Score> scores) {
  double sum = sum_of(scores), tokens = tokens_of(task);
  return {{"bits_per_byte", -sum / std::log(2.0) / double(task.text_bytes)},
          {"perplexity", std::exp(-sum / tokens)},
          {"loss", -sum / tokens},
          {"tokens", tokens},
          {"bytes", double(task.text_bytes)}};
}

const Metric* find(const TaskResult& result, std::string_view name) {
  auto at = std::find_if(result.metrics.begin(), result.metrics.end(),
                         [&](const Metric& metric) { return metric.name == name; });
  return at == result.metrics.end() ? nullptr : &*at;
}

}  // namespace

Chosen choose(const Question& question, std::span<const Score> scores) {
  Chosen chosen;
  auto by_bytes = [&](size_t i) { return scores[i].log_likelihood / double(question.texts[i].continuation.size()); };
  for (size_t i = 1; i < scores.size(); ++i) {
    if (scores[i].log_likelihood > scores[chosen.plain].log_likelihood) chosen.plain = i;
    if (by_bytes(i) > by_bytes(chosen.by_bytes)) chosen.by_bytes = i;
  }
  return chosen;
}

TaskResult judge(const Task& task, std::span<const Score> scores) {
  TOKAMAK_CHECK(scores.size() == task.requests.size(), "{} scores of {} requests", scores.size(), task.requests.size());
  TaskResult result{.name = task.spec.name, .kind = std::string(task.spec.format->name)};
  result.questions = int64_t(task.questions.size());
  switch (task.spec.format->answer) {
    case Answer::kChoice: result.metrics = judge_choices(task, scores); break;
    case Answer::kCompletion: result.metrics = judge_completions(task, scores); break;
    case Answer::kText: result.metrics = judge_text(task, scores); break;
  }
  return result;
}

std::vector<Metric> centred_averages(std::span<const TaskResult> results) {
  Metric plain{kCentred}, by_bytes{kCentredBytes};
  double count = 0;
  for (const TaskResult& result : results) {
    const Metric* accuracy = find(result, kAccuracy);
    if (!accuracy) continue;
    const Metric *own = find(result, kCentred), *own_bytes = find(result, kCentredBytes);
    plain.value += own ? own->value : accuracy->value;  // chance completes nothing
    by_bytes.value += own_bytes ? own_bytes->value : accuracy->value;
    ++count;
  }
  if (count == 0) return {};
  plain.value /= count;
  by_bytes.value /= count;
  return {plain, by_bytes};
}

}  // namespace tokamak
