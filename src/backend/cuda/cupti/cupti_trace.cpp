#include "backend/cuda/cupti.h"
#include "backend/cuda/libraries/late_library.h"

#include <cuda_runtime_api.h>
#include <cupti.h>
#include <fmt/format.h>

#include <cstdlib>
#include <mutex>

namespace tokamak::cuda {
namespace {

constexpr size_t kBufferBytes = 4 << 20, kBufferAlignment = 8;
// Records of calls are what ties those of kernels to tags, and to the time at which they were made.
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                         CUPTI_ACTIVITY_KIND_RUNTIME,
                                         CUPTI_ACTIVITY_KIND_DRIVER,
                                         CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMCPY2,
                                         CUPTI_ACTIVITY_KIND_MEMSET};

// The toolkit keeps it in a folder of its own, where the system does not look.
LateLibrary open_cupti() {
  std::string file = fmt::format("libcupti.so.{}", CUDART_VERSION / 1000), remedy = "install CUPTI";
  LateLibrary found(file, remedy);
  return found.is_open() ? found : LateLibrary("/usr/local/cuda/extras/CUPTI/lib64/" + file, remedy);
}

const LateLibrary& cupti_library() {
  static const LateLibrary library = open_cupti();
  return library;
}

template <auto* function>
auto* find(const char* name) {
  return cupti_library().find<function>(name);
}

// What CUPTI has handed over: its callbacks carry no data of ours, so there is one in a process.
struct Records {
  std::mutex mutex;
  DeviceReport report;
};

Records& records() {
  static Records all;
  return all;
}

template <typename Activity>
void add_activity(const CUpti_Activity* record, const char* name) {
  const auto& activity = *reinterpret_cast<const Activity*>(record);
  records().report.records.push_back({activity.correlationId, activity.start, activity.end, name});
}

// Of structs that later versions of CUPTI only append to.
void add(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const char* name = reinterpret_cast<const CUpti_ActivityKernel9*>(record)->name;
      return add_activity<CUpti_ActivityKernel9>(record, name ? name : "kernel");
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: return add_activity<CUpti_ActivityMemcpy5>(record, "memcpy");
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return add_activity<CUpti_ActivityMemcpyPtoP4>(record, "memcpy to another GPU");
    case CUPTI_ACTIVITY_KIND_MEMSET: return add_activity<CUpti_ActivityMemset4>(record, "memset");
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& call = *reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
      records().report.tags[call.correlationId] = call.externalId;
      return;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const auto& call = *reinterpret_cast<const CUpti_ActivityAPI*>(record);
      records().report.asked[call.correlationId] = call.start;
      return;
    }
    default: return;
  }
}

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  *size = *buffer ? kBufferBytes : 0;
  *most_records = 0;  // as many as there is room for
}

void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  std::lock_guard lock(records().mutex);
  CUpti_Activity* record = nullptr;
  while (find<&cuptiActivityGetNextRecord>("cuptiActivityGetNextRecord")(buffer, valid_bytes, &record) == CUPTI_SUCCESS)
    add(record);
  std::free(buffer);
}

class CuptiTrace : public DeviceTrace {
 public:
  CuptiTrace() {
    std::lock_guard lock(records().mutex);
    records().report = {};
  }
  ~CuptiTrace() override {
    for (CUpti_ActivityKind kind : kKinds) find<&cuptiActivityDisable>("cuptiActivityDisable")(kind);
  }
  CuptiTrace(const CuptiTrace&) = delete;
  CuptiTrace& operator=(const CuptiTrace&) = delete;

  bool begin() {
    if (find<&cuptiActivityRegisterCallbacks>("cuptiActivityRegisterCallbacks")(give_buffer, take_buffer) !=
        CUPTI_SUCCESS)
      return false;
    for (CUpti_ActivityKind kind : kKinds)
      if (find<&cuptiActivityEnable>("cuptiActivityEnable")(kind) != CUPTI_SUCCESS) return false;
    start_ = now();
    return start_ > 0;
  }

  void push(uint64_t tag) override {
    open_.push_back(spans_.size());
    spans_.push_back({.tag = tag, .begin = now()});
    find<&cuptiActivityPushExternalCorrelationId>("cuptiActivityPushExternalCorrelationId")(
        CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, tag);
  }
  void pop() override {
    uint64_t tag = 0;
    find<&cuptiActivityPopExternalCorrelationId>("cuptiActivityPopExternalCorrelationId")(
        CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &tag);
    spans_[open_.back()].end = now();
    open_.pop_back();
  }
  std::vector<DeviceActivity> take() override {
    find<&cuptiActivityFlushAll>("cuptiActivityFlushAll")(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    std::lock_guard lock(records().mutex);
    records().report.spans = spans_;
    return tagged_activities(records().report, start_);
  }

 private:
  // 0 when CUPTI cannot tell.
  static uint64_t now() {
    uint64_t time = 0;
    return find<&cuptiGetTimestamp>("cuptiGetTimestamp")(&time) == CUPTI_SUCCESS ? time : 0;
  }

  uint64_t start_ = 0;
  std::vector<DeviceReport::Span> spans_;
  std::vector<size_t> open_;  // spans that have not ended
};

}  // namespace

std::unique_ptr<DeviceTrace> trace_by_cupti() {
  if (!cupti_library().is_open()) return nullptr;
  auto trace = std::make_unique<CuptiTrace>();
  return trace->begin() ? std::move(trace) : nullptr;
}

}  // namespace tokamak::cuda
