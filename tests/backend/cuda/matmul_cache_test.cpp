#include "backend/cuda/matmul_cache.h"

#include "base/file.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

namespace tokamak::cuda {
namespace {

const MatmulMachine kMachine{"NVIDIA Test 1", 130100};

MatmulChoice choice(uint64_t first, double seconds) {
  return {{first, 1, 0xffffffffffffffffull, 0, 4, 5, 6, 0x8000000000000000ull}, seconds, 690.5, 608.25, 40};
}

const MatmulChoices kChoices{{"bf16 8x8x8 nn", choice(3, 1.25e-3)}, {"f32 4x4x4 nt +bias", choice(7, 0.1)}};

TEST(matmul_cache, text_parses_back) {
  auto parsed = parse_matmul_choices(kMachine, print_matmul_choices(kMachine, kChoices));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, kChoices);
}

// Files of earlier versions, and those of runs that resume.
TEST(matmul_cache, an_entry_may_lack_what_only_readers_want) {
  auto parsed = parse_matmul_choices(kMachine,
                                     R"({"format": 1, "device": "NVIDIA Test 1", "cublaslt": 130100, "matmuls": {
      "bf16 8x8x8 nn": {"algorithm": ")" +
                                         std::string(127, '0') + R"(7", "seconds": 0.5}}})");
  ASSERT_TRUE(parsed && parsed->contains("bf16 8x8x8 nn"));
  EXPECT_EQ(parsed->at("bf16 8x8x8 nn"), (MatmulChoice{{0, 0, 0, 0, 0, 0, 0, 7}, 0.5}));
}

TEST(matmul_cache, what_was_made_elsewhere_does_not_count) {
  std::string text = print_matmul_choices(kMachine, kChoices);
  EXPECT_FALSE(parse_matmul_choices({"NVIDIA Test 2", 130100}, text));
  EXPECT_FALSE(parse_matmul_choices({"NVIDIA Test 1", 130200}, text));
}

TEST(matmul_cache, damaged_text_does_not_count) {
  std::string text = print_matmul_choices(kMachine, kChoices);
  for (size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_FALSE(parse_matmul_choices(kMachine, text.substr(0, length))) << length;
  for (const char* other : {"[]", "3", "{}", "null", "\"matmuls\"", "{\"format\":1,\"device\":3}"})
    EXPECT_FALSE(parse_matmul_choices(kMachine, other)) << other;
  std::string digit = text, shorter = text;
  digit.replace(digit.find("ffffffffffffffff"), 1, "g");
  shorter.erase(shorter.find("ffffffffffffffff"), 1);
  EXPECT_FALSE(parse_matmul_choices(kMachine, digit));
  EXPECT_FALSE(parse_matmul_choices(kMachine, shorter));
}

TEST(matmul_cache, keeps_choices_on_disk) {
  TemporaryFolder folder;
  MatmulCache cache(folder.path(), kMachine);
  EXPECT_EQ(cache.path().filename(), "matmul-NVIDIA_Test_1-130100.json");
  EXPECT_EQ(cache.find("bf16 8x8x8 nn"), nullptr);
  for (const auto& [problem, made] : kChoices) cache.put(problem, made);
  EXPECT_FALSE(std::filesystem::exists(cache.path()));
  cache.save();
  MatmulCache again(folder.path(), kMachine);
  for (const auto& [problem, made] : kChoices) {
    ASSERT_NE(again.find(problem), nullptr);
    EXPECT_EQ(*again.find(problem), made);
  }
  EXPECT_EQ(again.find("bf16 8x8x8 nt"), nullptr);
}

TEST(matmul_cache, ignores_and_replaces_a_damaged_file) {
  TemporaryFolder folder;
  MatmulCache first(folder.path(), kMachine);
  write_file_atomic(first.path(), print_matmul_choices(kMachine, kChoices).substr(0, 100));
  MatmulCache cache(folder.path(), kMachine);
  EXPECT_EQ(cache.find("bf16 8x8x8 nn"), nullptr);
  cache.put("f16 2x2x2 nn", choice(1, 1));
  cache.save();
  EXPECT_NE(MatmulCache(folder.path(), kMachine).find("f16 2x2x2 nn"), nullptr);
}

TEST(matmul_cache, two_processes_keep_each_others_choices) {
  TemporaryFolder folder;
  MatmulCache one(folder.path(), kMachine), two(folder.path(), kMachine);
  one.put("f16 1x1x1 nn", choice(1, 1));
  two.put("f16 2x2x2 nn", choice(2, 2));
  one.save();
  two.save();
  MatmulCache both(folder.path(), kMachine);
  EXPECT_NE(both.find("f16 1x1x1 nn"), nullptr);
  EXPECT_NE(both.find("f16 2x2x2 nn"), nullptr);
}

TEST(matmul_cache, hands_on_what_was_used_and_nothing_else) {
  TemporaryFolder folder;
  MatmulCache first(folder.path(), kMachine);
  for (const auto& [problem, made] : kChoices) first.put(problem, made);
  first.save();
  MatmulCache cache(folder.path(), kMachine);
  cache.find("bf16 8x8x8 nn");
  cache.put("f16 2x2x2 nn", choice(1, 1));
  MatmulChoices used = *parse_matmul_choices(kMachine, cache.print_used());
  EXPECT_EQ(used, (MatmulChoices{{"bf16 8x8x8 nn", kChoices.at("bf16 8x8x8 nn")}, {"f16 2x2x2 nn", choice(1, 1)}}));
}

TEST(matmul_cache, adopted_choices_come_first_and_stay_out_of_the_file) {
  TemporaryFolder folder;
  MatmulCache first(folder.path(), kMachine);
  first.put("bf16 8x8x8 nn", choice(9, 1));
  first.save();
  MatmulCache cache(folder.path(), kMachine);
  EXPECT_FALSE(cache.adopt(print_matmul_choices({"NVIDIA Test 2", 130100}, kChoices)));
  EXPECT_EQ(*cache.find("bf16 8x8x8 nn"), choice(9, 1));
  EXPECT_TRUE(cache.adopt(print_matmul_choices(kMachine, kChoices)));
  EXPECT_EQ(*cache.find("bf16 8x8x8 nn"), kChoices.at("bf16 8x8x8 nn"));
  cache.put("f16 2x2x2 nn", choice(1, 1));
  cache.save();
  EXPECT_EQ(*MatmulCache(folder.path(), kMachine).find("bf16 8x8x8 nn"), choice(9, 1));
}

TEST(matmul_cache, adopted_choices_are_the_run_s_though_it_does_not_ask_for_them) {
  MatmulCache cache({}, kMachine);
  EXPECT_TRUE(cache.adopt(print_matmul_choices(kMachine, kChoices)));
  EXPECT_EQ(parse_matmul_choices(kMachine, cache.print_used()), kChoices);
}

TEST(matmul_cache, works_without_a_folder_or_a_disk_to_write_to) {
  MatmulCache memory({}, kMachine), unwritable("/proc/no_such_folder", kMachine);
  for (MatmulCache* cache : {&memory, &unwritable}) {
    cache->put("f32 1x1x1 nn", choice(1, 1));
    cache->save();
    EXPECT_NE(cache->find("f32 1x1x1 nn"), nullptr);
  }
  EXPECT_TRUE(memory.path().empty());
}

}  // namespace
}  // namespace tokamak::cuda
