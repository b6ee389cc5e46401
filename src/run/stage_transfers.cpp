#include "run/stage_transfers.h"

#include "passes/step_mesh.h"

#include <algorithm>

namespace tokamak {
namespace {

constexpr int kTransferStream = 3;  // behind those that a plan may have: computing, side, communication

}  // namespace

StageTransfers::Buffer StageTransfers::buffer_of(const std::string& state, int64_t micro_batch) const {
  return {state, std::max<int64_t>(micro_batch, 0) % store_.buffers(state)};
}

// What the buffer held before was read, or what is sent now was written, by what stands on stream 0.
void StageTransfers::start(const StageTransfer& transfer, int64_t micro_batch) {
  if (!begin_) begin_ = backend_.make_event();
  begin_->record(0);
  begin_->wait(kTransferStream);
  Buffer buffer = buffer_of(transfer.state, micro_batch);
  const ValueType& type = store_.type(transfer.state);
  void* data = store_.data(buffer.first, buffer.second);
  Communicator& stages = ranks_->along(kPipeAxis);
  int64_t count = num_elements(type.shape);
  Work work{.kind = Work::Kind::kTransfer, .stream = kTransferStream, .bytes = num_bytes(type), .name = transfer.state};
  observed(observer_, work, [&] {
    transfer.sends ? stages.send(data, count, type.dtype, int(transfer.stage), backend_.queue(kTransferStream))
                   : stages.recv(data, count, type.dtype, int(transfer.stage), backend_.queue(kTransferStream));
  });
  std::unique_ptr<StreamEvent>& done = done_[buffer];
  if (!done) done = backend_.make_event();
  done->record(kTransferStream);
  under_way_.insert(std::move(buffer));
}

void StageTransfers::wait_for(const Program& program, int64_t micro_batch) {
  if (under_way_.empty()) return;
  for (const Argument& argument : program.plan().graph.arguments())
    if (argument.kind == Argument::Kind::kState) wait_for(buffer_of(argument.name, micro_batch));
}

void StageTransfers::wait_for_all() {
  while (!under_way_.empty()) wait_for(Buffer(*under_way_.begin()));
}

void StageTransfers::wait_for(const Buffer& buffer) {
  if (under_way_.erase(buffer) > 0) done_.at(buffer)->wait(0);
}

}  // namespace tokamak
