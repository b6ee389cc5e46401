#include "run/run_samples.h"

#include "checkpoint/checkpoint_tensors.h"
#include "data/visible_text.h"
#include "passes/seed_cuts.h"

#include <algorithm>

namespace tokamak {
namespace {

// Whether the ranks of tensor together lack parts of the parameters, which others have.
bool cuts_parameters(const TensorStore& store) {
  auto is_over_others = [](const Cut& cut) { return !keeps_parameters_cut(cut.axis); };
  return std::any_of(store.names().begin(), store.names().end(), [&](const std::string& name) {
    const std::vector<Cut>& cuts = store.spec(name).cuts;
    return is_parameter(store.spec(name).role) &&
           (!store.is_here(name) || std::any_of(cuts.begin(), cuts.end(), is_over_others));
  });
}

}  // namespace

RunSamples::RunSamples(const Session& session, const Platform& platform, Backend& backend, const MeshRanks* ranks)
    : session_(session), gathers_(cuts_parameters(session.store())) {
  const ResolvedRun& run = session.resolved();
  if (run.asked.train.sample_every <= 0) return;
  int64_t tensor = run.mesh.size(kTensorAxis);
  if (tensor > 1 && !gathers_)
    ranks_ = std::make_unique<MeshRanks>(Mesh{{{kTensorAxis, tensor}}}, ranks->along(kTensorAxis));
  else if (!leads(ranks))
    return;
  const TensorStore* trained = gathers_ ? nullptr : &session.store();
  generator_ = std::make_unique<Generator>(run, platform, backend, 1, trained, backend.free_bytes(), ranks_.get());
}

std::optional<std::string> RunSamples::write(StepQueue& queue, const RunData& data, const std::function<bool()>& stop) {
  if (gathers_) queue.run([&] { copy_parameters(session_.store(), generator_ ? &generator_->weights() : nullptr); });
  if (!generator_) return {};
  const TrainConfig& train = session_.resolved().asked.train;
  std::vector<int32_t> start = data.sample_prompt(), tokens;
  bool stopped = false;
  queue.run([&] {
    generator_->take_weights();
    auto goes_on = [&](int32_t) { return ranks_ || !(stopped = stopped || stop()); };
    tokens = generator_->generate(start, train.sample_tokens, {.temperature = 0.8, .top_k = 50}, train.seed, goes_on);
  });
  if (stopped) return {};
  return visible_text(*data.tokenizer(), tokens);
}

}  // namespace tokamak
