#include "run/slot_check.h"

#include "backend/digest.h"
#include "base/error.h"
#include "base/frames.h"
#include "base/system.h"
#include "run/rank_decisions.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <span>

namespace tokamak {
namespace {

constexpr size_t kShownTensors = 3;  // tensors of a message

std::string list(const std::vector<std::string>& names) {
  std::span<const std::string> shown = std::span(names).first(std::min(names.size(), kShownTensors));
  std::string more = names.size() > kShownTensors ? fmt::format(" and {} more", names.size() - kShownTensors) : "";
  return fmt::format("{}{}", fmt::join(shown, ", "), more);
}

// The tensors in whose digests the second differs.
std::vector<std::string> different(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b,
                                   const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (size_t i = 0; i < names.size(); ++i)
    if (a.at(i) != b.at(i)) found.push_back(names[i]);
  return found;
}

// What most ranks have of the kept tensors; of two that differ the first.
const SlotDigests& most_common(const std::vector<SlotDigests>& all) {
  auto alike = [&](const SlotDigests& one) {
    return std::ranges::count_if(all, [&](const SlotDigests& other) { return other.kept == one.kept; });
  };
  return *std::ranges::max_element(all, {}, alike);
}

bool is_gradient(const std::string& name) { return name.starts_with("grad.") || name.starts_with("peer_grad."); }

// What checkpoints hold of a tensor, and all data ranks have whole.
bool is_replicated(const ArgumentSpec& spec) {
  bool is_cut = std::ranges::any_of(spec.cuts, [](const Cut& cut) { return cut.axis == kDataAxis; });
  return (is_parameter(spec.role) || spec.role == Role::kMoment) && !is_cut;
}

std::string bytes_of(const std::vector<uint64_t>& digests) {
  return {reinterpret_cast<const char*>(digests.data()), digests.size() * sizeof(uint64_t)};
}

std::vector<uint64_t> digests_of(std::string_view bytes) {
  std::vector<uint64_t> digests(bytes.size() / sizeof(uint64_t));
  std::memcpy(digests.data(), bytes.data(), digests.size() * sizeof(uint64_t));
  return digests;
}

std::vector<uint64_t> digests_of(Readback& readback, size_t count) {
  std::span<const std::byte> bytes = readback.wait();
  return digests_of(std::string_view(reinterpret_cast<const char*>(bytes.data()), count * sizeof(uint64_t)));
}

std::string encode(const SlotDigests& mine) {
  return encode_frame(
      {mine.rank, std::to_string(mine.of_rank), bytes_of(mine.first), bytes_of(mine.again), bytes_of(mine.kept)});
}

SlotDigests decode(const std::string& text) {
  FrameReader reader(text.size());
  reader.append(text);
  Frame frame = reader.next().value();
  return {frame.at(0), std::stoll(frame.at(1)), digests_of(frame.at(2)), digests_of(frame.at(3)),
          digests_of(frame.at(4))};
}

}  // namespace

SlotTurn slot_turn(int64_t number, int64_t rank, int64_t ranks, int64_t runs) {
  int64_t further = 1 + number / runs % (ranks - 1);
  return {number % runs, (rank + further) % ranks};
}

std::string describe_corruption(const std::vector<SlotDigests>& all, const std::vector<std::string>& gradients,
                                const std::vector<std::string>& kept, int64_t step) {
  const SlotDigests& usual = most_common(all);
  for (const SlotDigests& one : all)
    if (std::vector<std::string> names = different(usual.kept, one.kept, kept); !names.empty())
      return fmt::format("after step {} {} has other bits than {} of {}{}", step, one.rank, usual.rank, list(names),
                         all.size() == 2 ? ", one of the two wrongly" : "");
  for (const SlotDigests& one : all) {
    const SlotDigests& other = all.at(size_t(one.of_rank));
    if (std::vector<std::string> names = different(other.first, one.again, gradients); !names.empty())
      return fmt::format("in step {} {} computed a slot of {} again and got other bits of {}; one of the two is wrong",
                         step, one.rank, other.rank, list(names));
  }
  return "";
}

void require_checkable(const ResolvedRun& run) {
  const RunConfig& asked = run.asked;
  int64_t every = asked.train.verify_every, saves = asked.train.checkpoint_every;
  if (every == 0) return;
  if (run.data_ranks() == 1 || run.stages() > 1 || asked.mesh.zero > 1 || run.slots.runs() < 2 ||
      !asked.train.ramp.empty())
    user_error(
        "[train.verify_every] expected several data ranks with two slots each or more, mesh.zero 0 or 1, no pipeline "
        "and "
        "no train.ramp, got {} data ranks, mesh.slots = {}, mesh.zero = {} and {} stages; use --mesh.slots={}, or 0 "
        "here",
        run.data_ranks(), run.slots.count, asked.mesh.zero, run.stages(), 2 * run.data_ranks());
  if (saves == 0 || every % saves != 0 || asked.train.keep_checkpoints <= every / saves)
    user_error(
        "[train.verify_every] expected a multiple of train.checkpoint_every, and more train.keep_checkpoints than are "
        "saved in that time, so that there is one to go back to, got {} with {} and {}",
        every, saves, asked.train.keep_checkpoints);
}

SlotCheck::SlotCheck(const CompiledStep& step, const TensorStore& store, Backend& backend, const MeshRanks& ranks)
    : store_(store), backend_(backend), ranks_(ranks), every_(step.resolved.asked.train.verify_every),
      runs_(step.resolved.slots.runs()) {
  std::vector<std::string> odd;
  for (const std::string& name : store.names()) {
    if (is_replicated(store.spec(name))) kept_names_.push_back(name);
    if (!is_gradient(name)) continue;
    gradient_names_.push_back(name);
    auto other = step.odd_states.find(name);
    odd.push_back(other == step.odd_states.end() ? name : other->second);
  }
  gradients_[0] = tensors(gradient_names_, gradient_names_);
  gradients_[1] = tensors(odd, gradient_names_);
  kept_ = tensors(kept_names_, kept_names_);
}

SlotTurn SlotCheck::turn(int64_t step) const {
  return slot_turn(step / every_, ranks_.coordinate(kDataAxis), ranks_.along(kDataAxis).size(), runs_);
}

// A digest goes by the tensor's name, and so do those of odd runs.
SlotCheck::Tensors SlotCheck::tensors(const std::vector<std::string>& names,
                                      const std::vector<std::string>& salts) const {
  Tensors all;
  for (size_t i = 0; i < names.size(); ++i)
    all.digests.push_back(
        backend_.compile_digest(digest_pieces(store_.data(names[i]), dtype_bytes(store_.type(names[i]).dtype),
                                              digest_salt(salts[i]), store_.share(names[i]))));
  all.all = backend_.allocate(int64_t(sizeof(uint64_t) * std::max<size_t>(names.size(), 1)));
  return all;
}

std::unique_ptr<Readback> SlotCheck::take(const Tensors& tensors) const {
  auto* at = static_cast<std::byte*>(tensors.all->data());
  for (const std::unique_ptr<Kernel>& digest : tensors.digests) {
    void* to = at;
    digest->run({}, std::span<void* const>(&to, 1));
    at += sizeof(uint64_t);
  }
  return backend_.read_later(tensors.all->data(), int64_t(sizeof(uint64_t) * tensors.digests.size()));
}

std::string SlotCheck::compare(int64_t step) {
  TOKAMAK_CHECK(first_ && again_, "step {} was not checked", step);
  SlotDigests mine{.rank = fmt::format("rank {} on {}", ranks_.rank(), host_name()), .of_rank = turn(step).of_rank};
  mine.first = digests_of(*first_, gradient_names_.size());
  mine.again = digests_of(*again_, gradient_names_.size());
  std::unique_ptr<Readback> kept = take(kept_);
  mine.kept = digests_of(*kept, kept_names_.size());
  std::vector<SlotDigests> all;
  for (const std::string& text : ranks_.along(kDataAxis).exchange(encode(mine))) all.push_back(decode(text));
  return first_of(&ranks_, describe_corruption(all, gradient_names_, kept_names_, step));
}

}  // namespace tokamak
