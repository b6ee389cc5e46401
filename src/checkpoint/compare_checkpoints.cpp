#include "checkpoint/compare_checkpoints.h"

#include "checkpoint/checkpoint_tensors.h"
#include "checkpoint/float_conversion.h"
#include "checkpoint/model_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

namespace tokamak {
namespace {

constexpr int64_t kComparedElements = int64_t(1) << 20;  // elements at a time

/// The tensors of one side and of one kind: parameters, or the optimizer's states.
class Tensors {
 public:
  virtual ~Tensors() = default;
  virtual std::vector<std::string> names() const = 0;
  virtual bool contains(const std::string& name) const = 0;
  virtual ValueType type(const std::string& name) const = 0;
  virtual std::span<const std::byte> bytes(const std::string& name) const = 0;
  virtual void release(const std::string& name, std::span<const std::byte> bytes) const = 0;
};

class Parameters : public Tensors {
 public:
  explicit Parameters(const FoundCheckpoint& checkpoint) : tensors_(checkpoint) {}
  std::vector<std::string> names() const override { return tensors_.names(); }
  bool contains(const std::string& name) const override { return tensors_.contains(name); }
  ValueType type(const std::string& name) const override { return tensors_.type(name); }
  std::span<const std::byte> bytes(const std::string& name) const override { return tensors_.bytes(name); }
  void release(const std::string& name, std::span<const std::byte> bytes) const override {
    tensors_.release(name, bytes);
  }

 private:
  ModelTensors tensors_;
};

class States : public Tensors {
 public:
  explicit States(std::shared_ptr<const MappedFile> file) : file_(std::move(file)), reader_(file_) {}
  std::vector<std::string> names() const override { return reader_.names(); }
  bool contains(const std::string& name) const override { return reader_.contains(name); }
  ValueType type(const std::string& name) const override { return reader_.type(name); }
  std::span<const std::byte> bytes(const std::string& name) const override { return reader_.bytes(name); }
  void release(const std::string&, std::span<const std::byte> bytes) const override { file_->release(bytes); }

 private:
  std::shared_ptr<const MappedFile> file_;
  SafetensorsReader reader_;
};

template <typename Integer>
std::vector<double> integers(std::span<const std::byte> bytes) {
  std::vector<double> values;
  for (size_t at = 0; at < bytes.size(); at += sizeof(Integer)) {
    Integer value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    values.push_back(double(value));
  }
  return values;
}

std::vector<double> values_of(std::span<const std::byte> bytes, DType dtype) {
  if (dtype == DType::kI32) return integers<int32_t>(bytes);
  if (dtype == DType::kU8) return integers<uint8_t>(bytes);
  std::vector<float> floats(bytes.size() / size_t(dtype_bytes(dtype)));
  convert_floats(bytes, dtype, DType::kF32, std::as_writable_bytes(std::span(floats)));
  return {floats.begin(), floats.end()};
}

// Floats in their order, numbered so that neighbours are one apart: negative ones mirrored.
template <typename Bits>
int64_t place_of(std::span<const std::byte> element) {
  Bits bits;
  std::memcpy(&bits, element.data(), sizeof bits);
  constexpr Bits kSign = Bits(Bits(1) << (8 * sizeof bits - 1));
  return bits & kSign ? -int64_t(bits & Bits(~kSign)) : int64_t(bits);
}

int64_t ulps_between(std::span<const std::byte> a, std::span<const std::byte> b) {
  auto place = [](std::span<const std::byte> x) {
    return x.size() == sizeof(uint16_t) ? place_of<uint16_t>(x) : place_of<uint32_t>(x);
  };
  return std::abs(place(a) - place(b));
}

double distance(double a, double b) {
  double between = std::abs(a - b);
  return std::isnan(between) ? std::numeric_limits<double>::infinity() : between;
}

/// Compares the elements of one tensor, piece by piece.
class ElementComparison {
 public:
  explicit ElementComparison(TensorDifference& difference)
      : difference_(difference), a_(difference.a->dtype), b_(difference.b->dtype) {
    if (a_ == b_ && is_float(a_)) difference_.ulps = 0;
  }

  void add(std::span<const std::byte> a, std::span<const std::byte> b) {
    size_t size = size_t(dtype_bytes(a_)), count = a.size() / size;
    bool same_bytes = a_ == b_ && std::equal(a.begin(), a.end(), b.begin());
    if (!same_bytes) {
      std::vector<double> x = values_of(a, a_), y = values_of(b, b_);
      for (size_t i = 0; i < count; ++i) {
        auto bits_of = [&](std::span<const std::byte> piece) { return piece.subspan(i * size, size); };
        bool differs = a_ != b_ ? !is_same_value(x[i], y[i]) : !std::ranges::equal(bits_of(a), bits_of(b));
        if (!differs) continue;
        note(int64_t(i), x[i], y[i]);
        if (difference_.ulps) *difference_.ulps = std::max(*difference_.ulps, ulps_between(bits_of(a), bits_of(b)));
      }
    }
    before_ += int64_t(count);
  }

 private:
  static bool is_same_value(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

  void note(int64_t index, double a, double b) {
    if (difference_.differing++ == 0) difference_.first = before_ + index;
    double between = a == b ? 0 : distance(a, b), size = std::max(std::abs(a), std::abs(b));
    difference_.largest = std::max(difference_.largest, between);
    double relative = between == 0 ? 0 : std::isfinite(between) ? between / size : between;
    difference_.relative = std::max(difference_.relative, relative);
  }

  TensorDifference& difference_;
  DType a_, b_;
  int64_t before_ = 0;
};

void compare_elements(TensorDifference& difference, const Tensors& a, const Tensors& b) {
  const std::string& name = difference.name;
  ElementComparison comparison(difference);
  int64_t elements = num_elements(difference.a->shape);
  for (int64_t at = 0; at < elements; at += kComparedElements) {
    int64_t count = std::min(kComparedElements, elements - at);
    auto piece_of = [&](const Tensors& tensors, DType dtype) {
      return tensors.bytes(name).subspan(size_t(at * dtype_bytes(dtype)), size_t(count * dtype_bytes(dtype)));
    };
    auto piece_a = piece_of(a, difference.a->dtype), piece_b = piece_of(b, difference.b->dtype);
    comparison.add(piece_a, piece_b);
    a.release(name, piece_a);
    b.release(name, piece_b);
  }
}

void compare_tensors(const Tensors& a, const Tensors& b, std::vector<TensorDifference>& tensors) {
  std::set<std::string> names;
  for (const Tensors* side : {&a, &b})
    for (std::string& name : side->names()) names.insert(std::move(name));
  for (const std::string& name : names) {
    TensorDifference& difference = tensors.emplace_back(TensorDifference{.name = name});
    if (a.contains(name)) difference.a = a.type(name);
    if (b.contains(name)) difference.b = b.type(name);
    if (difference.is_compared()) compare_elements(difference, a, b);
  }
}

}  // namespace

bool CheckpointDifference::is_equal() const {
  return std::all_of(tensors.begin(), tensors.end(), [](const TensorDifference& t) { return t.is_equal(); });
}

CheckpointDifference compare_checkpoints(const FoundCheckpoint& a, const FoundCheckpoint& b) {
  CheckpointDifference difference;
  compare_tensors(Parameters(a), Parameters(b), difference.tensors);
  difference.has_states = a.files.contains(kOptimizerFile) && b.files.contains(kOptimizerFile);
  if (difference.has_states)
    compare_tensors(States(a.files.at(kOptimizerFile)), States(b.files.at(kOptimizerFile)), difference.tensors);
  return difference;
}

}  // namespace tokamak
