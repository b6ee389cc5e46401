#include "train/metrics.h"

#include "base/error.h"
#include "base/json.h"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

struct KeptLines {
  std::string text;
  int64_t reached = 0;  // the largest step of all lines
};

// Drops lines of later steps, and what is torn. A whole line without a step is no line of ours: not ours to drop.
KeptLines keep_lines(std::string_view text, int64_t last_step) {
  KeptLines kept;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
    ordered_json object = parse_ordered_json(text.substr(begin, end - begin));
    if (!object.is_object()) continue;
    bool has_step = object.contains("step") && object["step"].is_number_integer();
    int64_t step = has_step ? object["step"].get<int64_t>() : 0;
    kept.reached = std::max(kept.reached, step);
    if (step <= last_step) kept.text += text.substr(begin, end + 1 - begin);
  }
  return kept;
}

}  // namespace

std::string format_metrics(const StepMetrics& m) {
  ordered_json object = {{"step", m.step},
                         {"loss", m.loss},
                         {"grad_norm", m.grad_norm},
                         {"lr", m.lr},
                         {"ms", m.ms},
                         {"tokens_per_second", m.tokens_per_second},
                         {"gflops", m.gflops},
                         {"percent_of_peak", m.percent_of_peak},
                         {"data_wait_ms", m.data_wait_ms},
                         {"wall_seconds", m.wall_seconds}};
  if (m.val_loss) object["val_loss"] = *m.val_loss;
  if (m.loss_scale) object["loss_scale"] = *m.loss_scale;
  if (m.skipped) object["skipped"] = *m.skipped;
  return object.dump();
}

MetricsWriter::MetricsWriter(const fs::path& path, std::optional<int64_t> resumed_step) : path_(path) {
  if (!resumed_step) {
    write_file_atomic(path, "");
  } else if (fs::exists(path)) {
    std::string text = read_file(path);
    KeptLines kept = keep_lines(text, *resumed_step);
    reached_ = kept.reached;
    if (kept.text != text) write_file_atomic(path, kept.text);
  }
  fd_ = FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!fd_.is_open()) file_error("write", path, errno);
  size_ = ::lseek(fd_.get(), 0, SEEK_END);
}

void MetricsWriter::write(const StepMetrics& metrics) {
  std::string line = format_metrics(metrics) + "\n";
  if (metrics.step != last_step_) last_at_ = size_;
  last_step_ = metrics.step;
  for (size_t done = 0; done < line.size();) {
    ssize_t count = ::pwrite(fd_.get(), line.data() + done, line.size() - done, last_at_ + off_t(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) file_error("write", path_, errno);
    done += size_t(count);
  }
  size_ = last_at_ + int64_t(line.size());
}

}  // namespace tokamak
