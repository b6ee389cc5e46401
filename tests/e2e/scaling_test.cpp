// Runs of small models, and what they say of a larger one.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "pages/chart_library.h"
#include "tests/support/quick_file.h"
#include "tests/support/run_program.h"

namespace tokamak {
namespace {

// Five runs that end with losses of a known curve of compute: 1 + 1000 / C^0.2.
TEST(Scaling, RunFoldersGiveACurveAndAPage) {
  TemporaryFolder folder;
  std::vector<std::string> arguments = {"scaling"};
  for (int64_t width : {32, 64, 96, 128, 160}) {
    std::string name = fmt::format("w{}", width);
    std::filesystem::create_directory(folder / name);
    double parameters = double(256 * width + 16 * width + 2 * (12 * width * width + 13 * width) + 2 * width);
    double tokens = 100 * 1000.0, loss = 1 + 1000 / std::pow(6 * parameters * tokens, 0.2);
    std::string lines;
    for (int step = 1; step <= 100; ++step)
      lines += fmt::format("{{\"step\":{},\"loss\":5,\"ms\":500,\"tokens_per_second\":2000{}}}\n", step,
                           step == 100 ? fmt::format(",\"val_loss\":{:.17g}", loss) : "");
    write_file_quickly(folder / name / "metrics.jsonl", lines);
    write_file_quickly(folder / name / "config.json",
                       fmt::format(R"({{"model": {{"layers": 2, "heads": 2, "width": {}, "context": 16, "vocab": 256}},
                                       "train": {{"steps": 100}}}})",
                                   width));
    arguments.push_back(name);
  }
  ProgramResult text = run_program(folder.path(), arguments);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("no law     a law of parameters and tokens has five constants"), std::string::npos)
      << text.out;
  arguments.emplace_back("--json");
  nlohmann::json json = nlohmann::json::parse(run_program(folder.path(), arguments).out);
  EXPECT_NEAR(json["curve"]["E"], 1, 0.01);
  EXPECT_NEAR(json["curve"]["gamma"], 0.2, 0.002);
  EXPECT_EQ(json["runs"].size(), 5u);
  if (chart_library().empty()) GTEST_SKIP() << "built without Chart.js";
  arguments.back() = "--html=page.html";
  EXPECT_EQ(run_program(folder.path(), arguments).status, 0);
  EXPECT_NE(read_file(folder / "page.html").find("Loss and compute"), std::string::npos);
}

TEST(Scaling, MistakesAreTold) {
  TemporaryFolder folder;
  ProgramResult none = run_program(folder.path(), {"scaling"});
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("[scaling] expected run folders or --points"), std::string::npos) << none.err;
  write_file_quickly(folder / "p.jsonl", "{\"parameters\":1e7,\"tokens\":1e8,\"loss\":4}\n");
  ProgramResult few = run_program(folder.path(), {"scaling", "--points=p.jsonl"});
  EXPECT_EQ(few.status, 1);
  EXPECT_NE(few.err.find("[scaling] expected enough runs for a law, got 1"), std::string::npos) << few.err;
}

}  // namespace
}  // namespace tokamak
