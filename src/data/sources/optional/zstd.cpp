// Zstandard by libzstd.
#include <zstd.h>

#include "base/error.h"
#include "data/sources/compression.h"

namespace tokamak {

namespace {

/// The largest window a file may ask for, as `zstd --long=31` does; the memory is that of the window.
constexpr int kWindowLog = 31;

struct FreeStream {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

class ZstdBytes : public DecompressedBytes {
 public:
  explicit ZstdBytes(ByteBuffer in) : DecompressedBytes(std::move(in)), state_(ZSTD_createDStream()) {
    TOKAMAK_CHECK(state_ != nullptr, "libzstd cannot begin");
    ZSTD_DCtx_setParameter(state_.get(), ZSTD_d_windowLogMax, kWindowLog);
  }

  size_t read(std::span<char> out) override {
    ZSTD_outBuffer written = {out.data(), out.size(), 0};
    while (written.pos == 0) {
      // With nothing left to read, what libzstd still holds may come out; if a frame is open then, the file is too
      // short.
      bool ended = in_.view().empty() && !in_.fill();
      if (ended && !inside_frame_) return 0;
      ZSTD_inBuffer input = {in_.view().data(), in_.view().size(), 0};
      size_t status = ZSTD_decompressStream(state_.get(), &written, &input);
      in_.consume(input.pos);
      if (ZSTD_isError(status)) damaged_error(in_, "zstd", ZSTD_getErrorName(status));
      inside_frame_ = status != 0;
      if (ended && inside_frame_ && written.pos == 0) damaged_error(in_, "zstd", "the file is cut short");
    }
    return written.pos;
  }

 private:
  std::unique_ptr<ZSTD_DStream, FreeStream> state_;
  bool inside_frame_ = true;
};

std::unique_ptr<ByteStream> open(ByteBuffer in) { return std::make_unique<ZstdBytes>(std::move(in)); }

}  // namespace

const Decompressor zstd_decompressor = {.open = open};

}  // namespace tokamak
