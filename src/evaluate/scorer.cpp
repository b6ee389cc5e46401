#include "evaluate/scorer.h"

#include "base/error.h"
#include "compile/step_compiler.h"
#include "model/model.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace tokamak {
namespace {

constexpr int64_t kShortest = 32;                  // tokens of a row
constexpr int64_t kMostLogits = int64_t(1) << 29;  // bytes of a rank's logits, in f32
constexpr int64_t kMostTokens = 32 * 1024;         // of a batch: more would make nothing faster

std::vector<float> read_floats(const Program& program, const char* name, size_t count) {
  std::unique_ptr<Readback> readback = program.read_result(name);
  std::span<const std::byte> bytes = readback->wait();
  TOKAMAK_CHECK(bytes.size() == count * sizeof(float), "{} bytes of '{}' for {} tokens", bytes.size(), name, count);
  std::vector<float> values(count);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace

void require_scorable(const ResolvedRun& run) {
  if (run.stages() > 1 || run.mesh.size(kContextAxis) > 1)
    user_error(
        "[eval] expected a mesh of data and tensor ranks for tasks, got mesh.{} = {}: questions are short, and neither "
        "layers nor sequences are divided for them; leave the tasks out, and run `tokamak eval RUN --task=...` on the "
        "checkpoints",
        run.stages() > 1 ? "pipe" : "context", std::max(run.stages(), run.mesh.size(kContextAxis)));
}

Scorer::Scorer(const ResolvedRun& run, const Platform& platform, Backend& backend, TensorStore& store,
               ScorerOptions options)
    : run_(run), platform_(platform), backend_(backend), store_(store), options_(std::move(options)) {
  require_scorable(run);
}

// A few lengths, 32, 48, 64, 96 and so on: a program is made for each, and what is padded costs time.
int64_t Scorer::length_of(const Continuation& one) const {
  int64_t context = run_.asked.model.context, inputs = int64_t(one.context.size() + one.tokens.size()) - 1;
  TOKAMAK_CHECK(!one.context.empty() && !one.tokens.empty() && inputs <= context,
                "a continuation of {} tokens behind {} for a context of {}", one.tokens.size(), one.context.size(),
                context);
  int64_t length = kShortest;
  while (length < inputs) length = std::has_single_bit(uint64_t(length)) ? length / 2 * 3 : length / 3 * 4;
  return std::min(length, context);
}

int64_t Scorer::rows_of(int64_t length) const {
  int64_t ranks = run_.data_ranks(), tokens = std::min(kMostTokens * ranks, run_.batch * run_.asked.model.context);
  int64_t logits = kMostLogits * ranks / (4 * run_.asked.model.vocab * length);
  int64_t rows = std::min(tokens / length, logits) / ranks;
  return std::max<int64_t>(rows, 1) * ranks;
}

// Rather fewer rows than memory of one's own.
Scorer::Planned Scorer::plan_of(int64_t length) const {
  int64_t ranks = run_.data_ranks();
  for (int64_t rows = rows_of(length);; rows = std::max(rows / ranks / 2, int64_t(1)) * ranks) {
    Plan plan = compile_scores(run_, platform_, rows, length).plan;
    if (!options_.arena || plan.arena_bytes <= options_.arena_bytes || rows == ranks) return {rows, std::move(plan)};
  }
}

void Scorer::prepare(std::span<const Continuation> all) {
  std::map<int64_t, Planned> plans;
  for (const Continuation& one : all)
    if (int64_t length = length_of(one); !groups_.contains(length) && !plans.contains(length))
      plans.emplace(length, plan_of(length));
  int64_t most = 0;
  for (const auto& [length, planned] : plans) most = std::max(most, planned.plan.arena_bytes);
  if (most > options_.arena_bytes) {  // programs that are there keep the one that they have
    options_.arena = backend_.allocate(most);
    options_.arena_bytes = most;
  }
  ProgramOptions options{.ranks = options_.ranks, .arena = options_.arena, .record = run_.compile.cuda_graph};
  for (auto& [length, planned] : plans)
    groups_[length] = {planned.rows, std::make_unique<Program>(std::move(planned.plan), backend_, store_, options)};
}

std::vector<Score> Scorer::score(std::span<const Continuation> all, const std::function<void(size_t)>& progress) {
  prepare(all);
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return length_of(all[a]) > length_of(all[b]); });
  std::vector<Score> scores(all.size());
  for (size_t done = 0; done < order.size();) {
    int64_t length = length_of(all[order[done]]);
    Group& group = groups_.at(length);
    size_t end = done;
    while (end < order.size() && int64_t(end - done) < group.rows && length_of(all[order[end]]) == length) ++end;
    score_batch(group, length, all, std::span(order).subspan(done, end - done), scores);
    done = end;
    if (progress) progress(done);
  }
  return scores;
}

void Scorer::score_batch(Group& group, int64_t length, std::span<const Continuation> all, std::span<const size_t> batch,
                         std::vector<Score>& scores) const {
  auto count = size_t(group.rows * length);
  std::vector<int32_t> tokens(count, 0), targets(count, -1);
  for (size_t r = 0; r < batch.size(); ++r) {
    const Continuation& one = all[batch[r]];
    auto row = tokens.begin() + int64_t(r) * length;
    std::copy(one.tokens.begin(), one.tokens.end() - 1, std::copy(one.context.begin(), one.context.end(), row));
    std::copy(one.tokens.begin(), one.tokens.end(),
              targets.begin() + int64_t(r) * length + int64_t(one.context.size()) - 1);
  }
  Program& program = *group.program;
  program.set_input("tokens", tokens.data(), int64_t(count) * 4);
  program.set_input("targets", targets.data(), int64_t(count) * 4);
  program.run();
  std::vector<float> losses = read_floats(program, kTokenLosses, count);
  std::vector<float> choices = read_floats(program, kTokenChoices, count);
  for (size_t r = 0; r < batch.size(); ++r) {
    Score& score = scores[batch[r]];
    for (size_t i = r * size_t(length), end = i + size_t(length); i < end; ++i) {
      if (targets[i] < 0) continue;
      score.log_likelihood -= double(losses[i]);
      score.is_greedy = score.is_greedy && int32_t(choices[i]) == targets[i];
    }
  }
}

}  // namespace tokamak
