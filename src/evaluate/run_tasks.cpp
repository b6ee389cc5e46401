#include "evaluate/run_tasks.h"

#include <nlohmann/json.hpp>

namespace tokamak {
namespace {

using nlohmann::ordered_json;

ordered_json detail_of(const Question& question, std::span<const Score> scores,
                       std::span<const Continuation> requests) {
  ordered_json line = {{"place", question.place}, {"log_likelihoods", ordered_json::array()}};
  for (const Score& score : scores) line["log_likelihoods"].push_back(score.log_likelihood);
  if (scores.size() == 1) {
    line["greedy"] = scores[0].is_greedy;
    return line;
  }
  Chosen chosen = choose(question, scores, requests);
  line["right"] = question.right;
  line["chosen"] = chosen.plain;
  line["chosen_bytes"] = chosen.by_bytes;
  line["chosen_tokens"] = chosen.by_tokens;
  return line;
}

}  // namespace

std::vector<Task> load_tasks(const std::vector<TaskSpec>& specs, const Tokenizer& tokenizer, int64_t context,
                             const TaskOptions& options) {
  std::vector<Task> tasks;
  for (const TaskSpec& spec : specs) tasks.push_back(load_task(spec, tokenizer, context, options));
  return tasks;
}

std::vector<TaskResult> run_tasks(Scorer& scorer, std::span<const Task> tasks, const TaskProgress& progress,
                                  const TaskScores& told) {
  for (const Task& task : tasks) scorer.prepare(task.requests);
  std::vector<TaskResult> results;
  for (const Task& task : tasks) {
    std::vector<Score> scores = scorer.score(task.requests, [&](size_t done) {
      if (progress) progress(task.spec.name, done, task.requests.size());
    });
    results.push_back(judge(task, scores));
    if (told) told(task, scores);
  }
  return results;
}

std::string details_of(const Task& task, std::span<const Score> scores) {
  std::string lines;
  std::span<const Continuation> requests = task.requests;
  for (const Question& question : task.questions) {
    size_t texts = question.texts.size();
    ordered_json line = {{"task", task.spec.name}};
    line.update(detail_of(question, scores.first(texts), requests.first(texts)));
    scores = scores.subspan(texts), requests = requests.subspan(texts);
    lines += line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  }
  return lines;
}

}  // namespace tokamak
