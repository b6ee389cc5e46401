// Random bytes as messages between ranks: whatever pieces they come in, the same frames come out or the bytes are
// refused, and what comes out encodes to the bytes that came.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/frames.h"

namespace tokamak {
namespace {

struct Result {
  std::vector<Frame> frames;
  bool refused = false;
  bool operator==(const Result&) const = default;
};

Result read_in_pieces(const std::string& bytes, size_t piece) {
  FrameReader reader(1 << 16);
  Result result;
  try {
    for (size_t at = 0; at < bytes.size(); at += piece) {
      reader.append(std::string_view(bytes).substr(at, piece));
      while (auto frame = reader.next()) result.frames.push_back(*frame);
    }
  } catch (const UserError&) {
    result.refused = true;
  }
  return result;
}

}  // namespace
}  // namespace tokamak

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokamak;
  FuzzedDataProvider input(data, size);
  size_t piece = input.ConsumeIntegralInRange<size_t>(1, 64);
  std::string bytes = input.ConsumeRemainingBytesAsString();
  Result whole = read_in_pieces(bytes, std::max<size_t>(bytes.size(), 1));
  if (!(read_in_pieces(bytes, piece) == whole)) std::abort();
  std::string again;
  for (const Frame& frame : whole.frames) again += encode_frame(frame);
  if (!bytes.starts_with(again)) std::abort();
  return 0;
}
