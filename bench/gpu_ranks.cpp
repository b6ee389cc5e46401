// What ranks on GPUs exchange, by the mailbox and by NCCL: microseconds a call, recorded as in a step, and how much
// longer a matrix product takes beside such calls. Start it once for each GPU with torchrun's variables, as
// bench/gpu.sh does (part exchange).
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/nccl.h"
#include "base/rendezvous.h"
#include "graph/builder.h"
#include "ops/matmul.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace tokamak {
namespace {

constexpr int kRepeats = 9;
constexpr int64_t kMost = int64_t(256) << 20;  // bytes of the largest tensor

double median(std::vector<double> seconds) {
  std::nth_element(seconds.begin(), seconds.begin() + long(seconds.size() / 2), seconds.end());
  return seconds[seconds.size() / 2];
}

// GPT-2 124M's MLP at 64 sequences: (65536, 768) x (768, 3072).
class Product {
 public:
  explicit Product(Backend& backend) : backend_(backend) {
    GraphBuilder g(graph_);
    matmul(g, g.input("x", {DType::kBF16, {65536, 768}}), g.input("w", {DType::kBF16, {768, 3072}}));
    kernel_ = backend.compile(graph_, graph_.nodes()[0]);
    for (int64_t bytes : {int64_t(65536) * 768 * 2, int64_t(768) * 3072 * 2, int64_t(65536) * 3072 * 2,
                          std::max<int64_t>(kernel_->workspace_bytes(), 64)})
      memory_.push_back(backend.allocate(bytes));
    kernel_->use_workspace(memory_[3]->data());
    backend.end_compiling();
  }
  void run() {
    const void* in[] = {memory_[0]->data(), memory_[1]->data()};
    void* out[] = {memory_[2]->data()};
    kernel_->run(in, out);
  }

 private:
  Backend& backend_;
  Graph graph_{"product"};
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::unique_ptr<Memory>> memory_;
};

class Bench {
 public:
  Bench(Backend& backend, Communicator& world)
      : backend_(backend), world_(world), from_(backend.allocate(kMost)), to_(backend.allocate(kMost)),
        scratch_(backend.allocate(world.ordered_scratch_bytes(kMost / 4, DType::kF32, tree()))), product_(backend) {}

  void run(std::string_view by) {
    for (int64_t mib : {1, 8, 25, 50, 100, 200}) {
      int64_t count = (mib << 20) / 4;
      report(by, "all_reduce", mib, [&](Queue queue) {
        world_.all_reduce(from_->data(), to_->data(), count, DType::kF32, Reduction::kSum, queue);
      });
      report(by, "ordered all_reduce", mib, [&](Queue queue) {
        const void* part = from_->data();
        world_.ordered_all_reduce({&part, 1}, to_->data(), count, DType::kF32, tree(), scratch_->data(), queue);
      });
      report(by, "all_gather", mib, [&](Queue queue) {
        world_.all_gather(from_->data(), to_->data(), count / world_.size(), DType::kF32, queue);
      });
      report(by, "reduce_scatter", mib, [&](Queue queue) {
        world_.reduce_scatter(from_->data(), to_->data(), count / world_.size(), DType::kF32, Reduction::kSum, queue);
      });
    }
  }

 private:
  SlotTree tree() const { return {world_.size(), world_.size()}; }

  void report(std::string_view by, std::string_view what, int64_t mib, const std::function<void(Queue)>& call) {
    constexpr int kCalls = 8, kProducts = 4;
    Queue main = backend_.queue(0), side = backend_.queue(1);
    auto calls = [&] {
      for (int i = 0; i < kCalls; ++i) call(main);
    };
    auto products = [&] {
      for (int i = 0; i < kProducts; ++i) product_.run();
    };
    calls(), products();
    std::unique_ptr<Recording> recorded = backend_.record(calls);
    recorded->replay();
    std::vector<double> alone, plain, beside;
    auto ready = backend_.make_event(), done = backend_.make_event();
    for (int i = 0; i < kRepeats; ++i) {
      together();
      alone.push_back(backend_.time([&] { recorded->replay(); }) / kCalls);
      plain.push_back(backend_.time(products) / kProducts);
      together();
      ready->record(0), ready->wait(1);
      for (int n = 0, most = int(400 / (mib + 10)) + 1; n < most; ++n)
        call(side);  // all ranks as many, longer than products
      done->record(1);
      beside.push_back(backend_.time(products) / kProducts);
      done->wait(0);
      backend_.synchronize();
    }
    double loss = median(beside) - median(plain);
    if (world_.rank() == 0)
      fmt::print("{:<8} {:<20} {:>5} MiB {:>9.1f} us {:>9.1f} us a product, {:>9.1f} beside them ({:.2f} x)\n", by,
                 what, mib, 1e6 * median(alone), 1e6 * median(plain), 1e6 * median(beside), 1 + loss / median(plain));
    std::fflush(stdout);
  }

  void together() {
    world_.barrier(backend_.queue(0));
    backend_.synchronize();
  }

  Backend& backend_;
  Communicator& world_;
  std::unique_ptr<Memory> from_, to_, scratch_;
  Product product_;
};

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) {
  using namespace tokamak;
  std::optional<RankPlace> place =
      rank_place([](const char* name) { return static_cast<const char*>(std::getenv(name)); });
  std::string by = argc == 2 ? argv[1] : "";
  if (!place || (by != "mailbox" && by != "nccl") || !cuda::nccl_opens() || cuda::device_count() <= place->local_rank) {
    fmt::print("to be started as a rank, with a GPU and NCCL, with the argument mailbox or nccl: see bench/gpu.sh\n");
    return 0;
  }
  Rendezvous rendezvous(*place);
  std::unique_ptr<Backend> backend = cuda::make_backend(place->local_rank, cuda::default_cache());
  cuda::NcclOptions options{.device = place->local_rank, .cache = cuda::default_cache()};
  if (by == "nccl") options.mailbox_bytes = 0;
  std::unique_ptr<Communicator> world = cuda::make_nccl_world(rendezvous.store(), options);
  world->barrier(backend->queue(0));
  world->compare_calls(false);
  Bench(*backend, *world).run(by);
  world->barrier(backend->queue(0));
  backend->synchronize();
}
