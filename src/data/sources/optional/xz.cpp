// xz by liblzma.
#include <lzma.h>

#include "base/error.h"
#include "data/sources/compression.h"

namespace tokamak {

namespace {

/// What a file may ask for; `xz -9` needs 65 MiB.
constexpr uint64_t kMostMemory = uint64_t(2) << 30;

std::string_view reason_of(lzma_ret status) {
  switch (status) {
    case LZMA_MEMLIMIT_ERROR: return "it asks for more than 2 GiB of memory";
    case LZMA_OPTIONS_ERROR: return "it has options that liblzma does not know";
    case LZMA_BUF_ERROR: return "the file is cut short";
    default: return "the stream is not valid";
  }
}

class XzBytes : public DecompressedBytes {
 public:
  explicit XzBytes(ByteBuffer in) : DecompressedBytes(std::move(in)) {
    // Several streams may follow each other, with zeros between them.
    TOKAMAK_CHECK(lzma_stream_decoder(&state_, kMostMemory, LZMA_CONCATENATED) == LZMA_OK, "liblzma cannot begin");
  }
  ~XzBytes() override { lzma_end(&state_); }

  size_t read(std::span<char> out) override {
    state_.next_out = reinterpret_cast<uint8_t*>(out.data());
    state_.avail_out = out.size();
    while (!at_end_ && state_.avail_out == out.size()) {
      bool ended = in_.view().empty() && !in_.fill();
      state_.next_in = reinterpret_cast<const uint8_t*>(in_.view().data());
      state_.avail_in = in_.view().size();
      lzma_ret status = lzma_code(&state_, ended ? LZMA_FINISH : LZMA_RUN);
      in_.consume(in_.view().size() - state_.avail_in);
      at_end_ = status == LZMA_STREAM_END;
      if (!at_end_ && status != LZMA_OK) damaged_error(in_, "xz", reason_of(status));
    }
    return out.size() - state_.avail_out;
  }

 private:
  lzma_stream state_ = LZMA_STREAM_INIT;
  bool at_end_ = false;
};

std::unique_ptr<ByteStream> open(ByteBuffer in) { return std::make_unique<XzBytes>(std::move(in)); }

}  // namespace

const Decompressor xz_decompressor = {.open = open};

}  // namespace tokamak
