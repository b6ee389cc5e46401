// What a backend is to the executor: memory and kernels. It holds no policy: which node runs when, and where its
// operands lie, is the plan's business.
#pragma once

#include "backend/device_sensors.h"
#include "backend/device_trace.h"
#include "backend/digest.h"
#include "backend/queue.h"
#include "graph/graph.h"

#include <functional>
#include <memory>
#include <span>

namespace tokamak {

class ChainCompiler;
class KernelTuning;

/// One node made ready to run.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Scratch memory that run() needs; one piece serves all kernels of a program's stream, which run one after the
  /// other.
  virtual int64_t workspace_bytes() const { return 0; }
  /// Called once, before the first run, with workspace_bytes() or more.
  virtual void use_workspace(void*) {}
  /// Whether run() computes on the host, by the op's reference: right and slow, and nothing that Backend::record may
  /// hold.
  virtual bool by_reference() const { return false; }
  /// Pointers in the backend's memory, in the order of the node's inputs and outputs. An output may be the storage of
  /// an input where the op's in_place allows it.
  virtual void run(std::span<const void* const> inputs, std::span<void* const> outputs) = 0;
};

/// Memory of the backend; aligned to 64 bytes, zeroed.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void* data() = 0;
};

/// Launches that were recorded once and run again as one.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;
};

/// A copy to the host that is under way.
class Readback {
 public:
  virtual ~Readback() = default;
  virtual bool ready() const { return true; }
  /// The bytes, after waiting for them.
  virtual std::span<const std::byte> wait() = 0;
};

/// A point in the work of one stream, for another stream to wait for. It does nothing on a backend with one queue.
class StreamEvent {
 public:
  virtual ~StreamEvent() = default;
  /// What was asked for on `stream` so far comes before the event; forgets the record before.
  virtual void record(int /*stream*/) {}
  /// What is asked for on `stream` from now on waits for the last record.
  virtual void wait(int /*stream*/) {}
};

/// Copies of large tensors to the host, which go on beside the kernels where the backend has a queue.
class HostCopies {
 public:
  virtual ~HostCopies() = default;
  /// Those asked for from now on are of what stands there when all that was asked for on stream 0 so far is done.
  virtual void begin() = 0;
  /// To memory of allocate_host().
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;
  /// Those since begin() are all.
  virtual void end() = 0;
  /// Waits for them, on any thread of the backend.
  virtual void wait() = 0;
  /// What is asked for on `stream` from now on comes after them. Where it is recorded, each replay comes after those
  /// that have ended by then.
  virtual void come_before(int stream) = 0;
};

/// A moment in the work of one stream, by the device's own clock.
class TimeMark {
 public:
  virtual ~TimeMark() = default;
  /// Seconds from `begin`, of the same backend, to this one, to about a microsecond within a minute. Waits for both.
  virtual double seconds_since(const TimeMark& begin) const = 0;
};

/// Work is done in the order in which it is asked for. A backend with a queue of its own (a GPU) returns before the
/// work is done, except where it says that it waits. It may have more queues, streams 1, 2, ..., for kernels alone:
/// what orders those and stream 0, on which everything else is done, are events.
class Backend {
 public:
  virtual ~Backend() = default;
  /// To be called first in every other thread than the backend's maker that calls the backend or its kernels.
  virtual void use_in_this_thread() {}
  virtual std::unique_ptr<Memory> allocate(int64_t bytes) = 0;
  virtual std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node) = 0;
  /// The same for a kernel that runs on that stream; streams are made when they are first asked for.
  virtual std::unique_ptr<Kernel> compile_on(int /*stream*/, const Graph& graph, const Node& node) {
    return compile(graph, node);
  }
  /// That stream, for what is not a kernel (backend/communicator.h).
  virtual Queue queue(int /*stream*/) { return nullptr; }
  virtual std::unique_ptr<StreamEvent> make_event() { return std::make_unique<StreamEvent>(); }
  /// When all that was asked for on `stream` so far is done. Null where it is done on return, so that the host's clock
  /// tells.
  virtual std::unique_ptr<TimeMark> mark_time(int /*stream*/) { return nullptr; }
  /// Null: there is nothing that watches the device.
  virtual std::unique_ptr<DeviceTrace> trace_device() { return nullptr; }
  virtual std::unique_ptr<DeviceSensors> open_sensors() { return nullptr; }
  /// A kernel without inputs that writes the digest of what these pieces of the backend's memory hold then: 8 bytes.
  virtual std::unique_ptr<Kernel> compile_digest(std::vector<DigestPiece> pieces);
  /// To be called when kernels were compiled, before they run for good: gives back memory that it took to choose
  /// them, and writes the choices down.
  virtual void end_compiling() {}
  /// Null: kernels are what they are.
  virtual KernelTuning* tuning() { return nullptr; }
  /// Null: a kernel waits for those before it (backend/chained.h).
  virtual ChainCompiler* chains() { return nullptr; }

  /// Memory of the host that copies come to fastest, not zeroed; null: there is none to be had.
  virtual std::unique_ptr<Memory> allocate_host(int64_t bytes);
  /// It must not outlive the backend.
  virtual std::unique_ptr<HostCopies> make_host_copies();

  virtual void copy_in(void* to, const void* from, int64_t bytes) = 0;   // host to backend; `from` is free on return
  virtual void copy_out(void* to, const void* from, int64_t bytes) = 0;  // backend to host; waits for what came before
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;
  /// The same on a queue of queue().
  virtual void copy_on(Queue /*queue*/, void* to, const void* from, int64_t bytes) { copy(to, from, bytes); }
  /// A copy to the host of what stands there when the work before is done; does not wait.
  virtual std::unique_ptr<Readback> read_later(const void* from, int64_t bytes);
  /// Waits for all work of stream 0.
  virtual void synchronize() {}
  /// What `work` launches, recorded instead of run; null when the backend cannot or need not.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& /*work*/) { return nullptr; }
  /// Seconds that the work which `work` launches takes, by the backend's own clock; waits.
  virtual double time(const std::function<void()>& work);
  /// Memory that the process has of the machine now, by the system's own count, and what may still be had.
  virtual int64_t used_bytes() const = 0;
  virtual int64_t free_bytes() const = 0;
};

}  // namespace tokamak
