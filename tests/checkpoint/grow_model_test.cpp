// A model that gets rows for added tokens.
#include "checkpoint/export_model.h"
#include "checkpoint/hugging_face_files.h"
#include "checkpoint/run_folder.h"
#include "checkpoint/safetensors.h"
#include "config/config.h"
#include "config/json.h"
#include "tests/data/small_vocabulary.h"
#include "tests/support/expect_error.h"
#include "tests/support/host_store.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tokamak {
namespace {

Vocabulary own_vocabulary() { return small_vocabulary({{"a", "b"}, {"ab", "c"}}); }

class GrowModel : public testing::Test {
 protected:
  GrowModel() : own_(own_vocabulary()), model_(model_of(own_)), saved_(model_) {
    saved_.fill(5);
    RunConfig run;
    run.model = model_;
    CheckpointState state{.step = 2, .config_json = to_json(run), .for_others = hugging_face_files(model_, &own_)};
    checkpoint_ = save_checkpoint(folder_.path(), state, saved_.store, 1);
  }
  static ModelConfig model_of(const Tokenizer& tokenizer) {
    ModelConfig model = test::small_model();
    model.vocab = tokenizer.vocab_size();
    return model;
  }
  void grow(const Tokenizer* tokenizer, const Tokenizer& more, const std::string& to, std::optional<DType> type = {}) {
    export_model(open_checkpoint(checkpoint_, nullptr), tokenizer, folder_ / to, {.type = type, .grow_to = &more});
  }
  std::vector<float> table(const std::filesystem::path& file) const {
    SafetensorsReader reader(file);
    std::span<const std::byte> bytes = reader.bytes(reader.type("wte.weight").dtype == DType::kF32 ? "wte.weight" : "");
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  TemporaryFolder folder_;
  Tokenizer own_;
  ModelConfig model_;
  test::HostStore saved_;
  std::filesystem::path checkpoint_;
};

TEST_F(GrowModel, NewRowsAreTheMeanOfTheOthers) {
  Tokenizer more(with_added_token(with_added_token(own_vocabulary(), "<|user|>", {}), "<|tool|>", {}));
  grow(&own_, more, "grown");
  std::vector<float> before = table(checkpoint_ / "model.safetensors"),
                     after = table(folder_ / "grown/model.safetensors");
  auto width = size_t(model_.width);
  ASSERT_EQ(after.size(), before.size() + 2 * width);
  EXPECT_EQ(std::memcmp(before.data(), after.data(), before.size() * sizeof(float)), 0);
  for (size_t c = 0; c < width; ++c) {
    double sum = 0;
    for (size_t i = c; i < before.size(); i += width) sum += before[i];
    double mean = sum / double(model_.vocab);
    EXPECT_NEAR(after[before.size() + c], mean, 1e-7);
    EXPECT_EQ(after[before.size() + c], after[before.size() + width + c]);
  }
  FoundCheckpoint opened = open_checkpoint(folder_ / "grown", nullptr);
  EXPECT_EQ(run_config_from_json(opened.state.config_json, "grown").model.vocab, own_.vocab_size() + 2);
  EXPECT_EQ(load_model_tokenizer(folder_ / "grown")->vocab_size(), more.vocab_size());
}

// Models often have more rows than tokens: those serve the first new tokens.
TEST_F(GrowModel, RowsThatAreThereAlreadyStay) {
  Vocabulary fewer = own_vocabulary();
  grow(&own_, Tokenizer(fewer), "same");
  EXPECT_EQ(table(folder_ / "same/model.safetensors"), table(checkpoint_ / "model.safetensors"));
}

TEST_F(GrowModel, RefusesWhatDoesNotOnlyAdd) {
  Vocabulary other = own_vocabulary();
  other.merges.pop_back();
  expect_user_error([&] { grow(&own_, Tokenizer(other), "out"); }, {"only adds tokens", "merges"});
  expect_user_error([&] { grow(nullptr, own_, "out"); }, {"expected a model with its tokenizer"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

}  // namespace
}  // namespace tokamak
