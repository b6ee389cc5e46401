// What the scores of a task's requests mean.
#include "evaluate/task.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

constexpr const char *kAccuracy = "accuracy", *kAccuracyBytes = "accuracy_bytes", *kAccuracyTokens = "accuracy_tokens",
                     *kCentred = "centred", *kCentredBytes = "centred_bytes", *kCentredTokens = "centred_tokens";

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
  int64_t plain = 0, by_bytes = 0, by_tokens = 0, count = int64_t(task.questions.size());
  double guessed = 0;
  std::span<const Continuation> requests = task.requests;
  for (const Question& question : task.questions) {
    size_t choices = question.texts.size();
    Chosen chosen = choose(question, scores.first(choices), requests.first(choices));
    scores = scores.subspan(choices), requests = requests.subspan(choices);
    plain += int64_t(chosen.plain) == question.right;
    by_bytes += int64_t(chosen.by_bytes) == question.right;
    by_tokens += int64_t(chosen.by_tokens) == question.right;
    guessed += 1 / double(choices) / double(count);
  }
  double chance = task.spec.chance >= 0 ? task.spec.chance : guessed;
  Metric accuracy = share(kAccuracy, plain, count), bytes = share(kAccuracyBytes, by_bytes, count);
  Metric tokens = share(kAccuracyTokens, by_tokens, count);
  return {accuracy,
          bytes,
          tokens,
          centred(kCentred, accuracy.value, chance),
          centred(kCentredBytes, bytes.value, chance),
          centred(kCentredTokens, tokens.value, chance)};
}

// Perplexity is that of whole completions, as lm-evaluation-harness has LAMBADA's; the loss is of their tokens.
std::vector<Metric> judge_completions(const Task& task, std::span<const Score> scores) {
  int64_t right = std::count_if(scores.begin(), scores.end(), [](const Score& score) { return score.is_greedy; });
  double sum = sum_of(scores);
  Metric accuracy = share(kAccuracy, right, int64_t(scores.size()));
  return {accuracy,
          centred(kCentred, accuracy.value, std::max(task.spec.chance, 0.0)),  // chance completes nothing
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

Chosen choose(const Question& question, std::span<const Score> scores, std::span<const Continuation> requests) {
  Chosen chosen;
  auto by_tokens = [&](size_t i) { return scores[i].log_likelihood / double(requests[i].tokens.size()); };
  auto by_bytes = [&](size_t i) { return scores[i].log_likelihood / double(question.texts[i].continuation.size()); };
  for (size_t i = 1; i < scores.size(); ++i) {
    if (scores[i].log_likelihood > scores[chosen.plain].log_likelihood) chosen.plain = i;
    if (by_bytes(i) > by_bytes(chosen.by_bytes)) chosen.by_bytes = i;
    if (by_tokens(i) > by_tokens(chosen.by_tokens)) chosen.by_tokens = i;
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
  std::vector<Metric> means = {{kCentred}, {kCentredBytes}, {kCentredTokens}};
  double count = 0;
  for (const TaskResult& result : results) {
    const Metric* accuracy = find(result, kAccuracy);
    if (!accuracy) continue;
    const Metric* plain = find(result, kCentred);
    for (Metric& mean : means) {
      const Metric* own = find(result, mean.name);  // completions are not chosen by their length
      mean.value += own ? own->value : plain ? plain->value : accuracy->value;
    }
    ++count;
  }
  if (count == 0) return {};
  for (Metric& mean : means) mean.value /= count;
  return means;
}

}  // namespace tokamak
