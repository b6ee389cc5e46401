#include "run/tensorboard.h"

#include "base/crc32c.h"
#include "base/error.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

// Wire types of protocol buffers, and the fields of event.proto, summary.proto and tensor.proto.
enum Wire : uint32_t { kVarint = 0, kDouble = 1, kBytes = 2, kFloat = 5 };
namespace event {
constexpr uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
}
namespace summary {
constexpr uint32_t kValue = 1, kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9, kPluginData = 1, kPluginName = 1;
}
namespace tensor {
constexpr uint32_t kType = 1, kShape = 2, kString = 8;
constexpr uint64_t kStringType = 7;
}  // namespace tensor
constexpr uint32_t kSessionStatus = 1;
constexpr uint64_t kSessionStart = 1;

void add_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += char(value | 0x80);
  to += char(value);
}

template <typename T>
void add_raw(std::string& to, T value) {
  static_assert(std::endian::native == std::endian::little);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof value);
}

void add_key(std::string& to, uint32_t field, Wire wire) { add_varint(to, field << 3 | wire); }

void add_number(std::string& to, uint32_t field, uint64_t value) {
  add_key(to, field, kVarint);
  add_varint(to, value);
}

void add_bytes(std::string& to, uint32_t field, std::string_view bytes) {
  add_key(to, field, kBytes);
  add_varint(to, bytes.size());
  to += bytes;
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string event_at(double time, int64_t step) {
  std::string event;
  add_key(event, event::kWallTime, kDouble);
  add_raw(event, time);
  add_number(event, event::kStep, uint64_t(step));
  return event;
}

void add_scalar(std::string& summary, std::string_view tag, double value) {
  if (!std::isfinite(value)) return;
  std::string one;
  add_bytes(one, summary::kTag, tag);
  add_key(one, summary::kSimpleValue, kFloat);
  add_raw(one, float(value));
  add_bytes(summary, summary::kValue, one);
}

std::string summary_event(double time, int64_t step, const std::string& summary) {
  std::string event = event_at(time, step);
  add_bytes(event, event::kSummary, summary);
  return event;
}

// As TensorFlow has it, so that the CRC of a text that has CRCs in it does not become 0.
uint32_t masked_crc(std::string_view bytes) {
  uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

// Names sort by time, also of two starts in a second.
std::string file_name() {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') std::strcpy(host, "localhost");
  return fmt::format("events.out.tfevents.{:.6f}.{}.{}", now(), host, ::getpid());
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(const fs::path& run, int64_t done, std::string_view config) {
  fs::path folder = run / "tensorboard";
  make_folder(folder);
  path_ = folder / file_name();
  fd_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
  if (!fd_.is_open()) file_error("write", path_, errno);
  std::string version = event_at(now(), 0);
  add_bytes(version, event::kFileVersion, "brain.Event:2");
  add(version);
  if (done > 0) {
    std::string start = event_at(now(), done + 1), status;
    add_number(status, kSessionStatus, kSessionStart);
    add_bytes(start, event::kSessionLog, status);
    add(start);
  }
  write_text(done, "config", config);
}

void TensorBoardWriter::write(const StepMetrics& m) {
  std::string summary;
  add_scalar(summary, "train/loss", m.loss);
  add_scalar(summary, "train/gradient_norm", m.grad_norm);
  add_scalar(summary, "train/learning_rate", m.lr);
  add_scalar(summary, "speed/tokens_per_second", m.tokens_per_second);
  add_scalar(summary, "speed/step_ms", m.ms);
  add_scalar(summary, "speed/data_wait_ms", m.data_wait_ms);
  if (m.mfu > 0) add_scalar(summary, "speed/mfu", m.mfu);
  if (m.loss_scale) add_scalar(summary, "train/loss_scale", *m.loss_scale);
  add(summary_event(m.wall_seconds, m.step, summary));
}

void TensorBoardWriter::write_evaluations(const StepMetrics& m) {
  std::string summary;
  if (m.val_loss) add_scalar(summary, "validation/loss", *m.val_loss);
  if (m.shadow) {
    add_scalar(summary, "shadow/cosine", m.shadow->cosine);
    add_scalar(summary, "shadow/least_cosine", m.shadow->least);
    add_scalar(summary, "shadow/loss_difference", m.shadow->loss - m.shadow->bf16_loss);
    add_scalar(summary, "shadow/saturated", double(m.shadow->saturated));
    for (const auto& [kind, cosine] : m.shadow->cosines) add_scalar(summary, "shadow/cosine/" + kind, cosine);
  }
  for (const TaskMetric& metric : m.tasks)
    add_scalar(summary, fmt::format("tasks/{}/{}", metric.task, metric.name), metric.value);
  if (!summary.empty()) add(summary_event(now(), m.step, summary));
}

void TensorBoardWriter::write_text(int64_t step, std::string_view tag, std::string_view text) {
  std::string content, plugin, metadata, value, summary;
  add_number(content, tensor::kType, tensor::kStringType);
  add_bytes(content, tensor::kShape, "");  // a scalar
  add_bytes(content, tensor::kString, text);
  add_bytes(plugin, summary::kPluginName, "text");
  add_bytes(metadata, summary::kPluginData, plugin);
  add_bytes(value, summary::kTag, tag);
  add_bytes(value, summary::kTensor, content);
  add_bytes(value, summary::kMetadata, metadata);
  add_bytes(summary, summary::kValue, value);
  add(summary_event(now(), step, summary));
}

void TensorBoardWriter::add(const std::string& event) {
  std::string record;
  add_raw(record, uint64_t(event.size()));
  add_raw(record, masked_crc(record));
  record += event;
  add_raw(record, masked_crc(event));
  for (size_t done = 0; done < record.size();) {
    ssize_t count = ::write(fd_.get(), record.data() + done, record.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) file_error("write", path_, errno);
    done += size_t(count);
  }
}

}  // namespace tokamak
