#include "exec/chain.h"

#include "base/divide.h"
#include "plan/storage.h"

#include <algorithm>

namespace tokamak {
namespace {

constexpr int kLongestPiece = 16, kShortestPiece = 4, kFewestPieces = 3;
constexpr int64_t kPlaceAlignment = 256;

struct Run {
  int first = 0, count = 0;
};

Run longest_run(const Plan& plan, const std::function<bool(const Node&)>& can_chain) {
  Run best, now;
  for (int i = 0; i < int(plan.launches.size()); ++i) {
    bool is_link = can_chain(plan.graph.nodes()[size_t(plan.launches[size_t(i)].node)]);
    now = is_link ? Run{now.count > 0 ? now.first : i, now.count + 1} : Run{};
    if (now.count > best.count) best = now;
  }
  return best;
}

// What a link makes.
struct Made {
  int link = 0;
  int last_piece = 0;  // in which it is read
};

class ChainMaker {
 public:
  ChainMaker(const Plan& plan, Run run, int pieces)
      : plan_(plan), run_(run), pieces_(pieces), roots_(find_roots(plan.graph)) {
    find_made();
    find_readers();
  }

  std::optional<Chain> make() {
    if (shares_states()) return std::nullopt;
    std::vector<int64_t> begins = place_values();
    for (const auto& [value, made] : made_)
      if (piece_of(made.link) == emptied_in(made)) return std::nullopt;
    place_views();
    for (int i = 0; i < run_.count; ++i) {
      Chain::Link link = make_link(i);
      bool waits = is_first(i);
      if (!waits && std::find(link.awaited.begin(), link.awaited.end(), true) == link.awaited.end())
        return std::nullopt;
      if (waits) {
        auto emptied = size_t((piece_of(i) + pieces_ - 1) % pieces_);
        link.emptied = begins[emptied], link.emptied_bytes = begins[emptied + 1] - begins[emptied];
      }
      chain_.links.push_back(std::move(link));
    }
    return std::move(chain_);
  }

 private:
  int begin_of(int piece) const { return run_.count * piece / pieces_; }
  int piece_of(int link) const {
    int piece = 0;
    while (begin_of(piece + 1) <= link) ++piece;
    return piece;
  }
  bool is_first(int link) const { return begin_of(piece_of(link)) == link; }
  // Whether a link writes an argument's storage that another one reads or writes, for which that one would not wait.
  bool shares_states() const {
    std::map<ValueId, int> writer;  // by argument
    auto argument_of = [&](ValueId value) { return plan_.locations[size_t(value)].argument; };
    for (int i = 0; i < run_.count; ++i)
      for (ValueId output : node(run_.first + i).outputs)
        if (argument_of(output) != kNoValue && !writer.try_emplace(argument_of(output), i).second) return true;
    for (int i = 0; i < run_.count; ++i)
      for (ValueId input : node(run_.first + i).inputs)
        if (auto by = writer.find(argument_of(input)); by != writer.end() && by->second != i) return true;
    return false;
  }

  // By the kernel that the piece after its last reader begins with; behind the last piece comes the first of the next
  // run.
  int emptied_in(const Made& made) const { return (made.last_piece + 1) % pieces_; }

  const Node& node(int launch) const { return plan_.graph.nodes()[size_t(plan_.launches[size_t(launch)].node)]; }

  void find_made() {
    chain_.first = run_.first;
    for (int i = 0; i < run_.count; ++i)
      for (ValueId output : node(run_.first + i).outputs)
        if (plan_.locations[size_t(output)].argument == kNoValue) made_[output] = {i, piece_of(i)};  // else: a state
  }

  void read(ValueId value, int piece) {
    if (auto made = made_.find(roots_[size_t(value)]); made != made_.end())
      made->second.last_piece = std::max(made->second.last_piece, piece);
  }

  // What comes behind the chain counts as of its last piece.
  void find_readers() {
    for (int launch = 0; launch < int(plan_.launches.size()); ++launch) {
      int link = launch - run_.first;
      int piece = link >= 0 && link < run_.count ? piece_of(link) : pieces_ - 1;
      for (ValueId input : node(launch).inputs) read(input, piece);
    }
    for (const Result& result : plan_.graph.results()) read(result.value, pieces_ - 1);
    for (const CopyBack& copy : plan_.copies) read(copy.value, pieces_ - 1);
  }

  // Those that are made empty together lie together; where they begin, by the piece that reads them last.
  std::vector<int64_t> place_values() {
    std::vector<int64_t> begins;
    for (int piece = 0; piece < pieces_; ++piece) {
      begins.push_back(chain_.bytes);
      for (const auto& [value, made] : made_) {
        if (made.last_piece != piece) continue;
        chain_.places[value] = chain_.bytes;
        chain_.bytes += round_up(num_bytes(plan_.graph.type(value)), kPlaceAlignment);
      }
    }
    begins.push_back(chain_.bytes);
    return begins;
  }

  void place_views() {
    for (ValueId view = 0; view < plan_.graph.num_values(); ++view)
      if (ValueId from = roots_[size_t(view)]; made_.contains(from) && from != view)
        chain_.places[view] =
            chain_.places.at(from) + plan_.locations[size_t(view)].offset - plan_.locations[size_t(from)].offset;
  }

  // The first of a piece awaits nothing.
  Chain::Link make_link(int i) const {
    Chain::Link link;
    for (ValueId input : node(run_.first + i).inputs)
      link.awaited.push_back(!is_first(i) && chain_.places.contains(input));
    return link;
  }

  const Plan& plan_;
  Run run_;
  int pieces_;
  std::vector<ValueId> roots_;  // by value
  Chain chain_;
  std::map<ValueId, Made> made_;
};

}  // namespace

const Chain::Link* Chain::link(size_t launch) const {
  size_t at = launch - size_t(first);
  return launch >= size_t(first) && at < links.size() ? &links[at] : nullptr;
}

std::optional<Chain> find_chain(const Plan& plan, const std::function<bool(const Node&)>& can_chain) {
  if (plan.streams.size() > 1) return std::nullopt;
  Run run = longest_run(plan, can_chain);
  for (int pieces = std::max(kFewestPieces, int(ceil_div(run.count, kLongestPiece)));
       run.count >= kShortestPiece * pieces; ++pieces)
    if (std::optional<Chain> chain = ChainMaker(plan, run, pieces).make()) return chain;
  return std::nullopt;
}

}  // namespace tokamak
