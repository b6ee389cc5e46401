#include "pages/ladder_part.h"

#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

constexpr const char* kLadder =
    R"({"date":"today","command":"tokamak ladder --a='<b>'","machine":{"name":"H<200>"},"rungs":[
{"name":"fp32","ms":20,"predicted_ms":10,"tokens_per_second":1000,"mfu":0.25,"optional":false,"kept":true,"changed":true,
"speedup_over_first":1},
{"name":"+ bf16","ms":40,"predicted_ms":10,"tokens_per_second":500,"mfu":0.1,"optional":false,"kept":false,"changed":true,
"speedup_over_first":0.5},
{"name":"+ more","failure":"does not <fit>"}],"meshes":[
{"name":"data 2","ms":20,"predicted_ms":10,"tokens_per_second":1900,"mfu":0.2,"speedup_over_one":1.9}]})";

TEST(LadderPart, HasEveryRungAndWhatBecameOfIt) {
  TemporaryFolder folder;
  write_file_quickly(folder / "ladder.json", kLadder);
  PageCharts charts;
  std::string part = ladder_part(folder / "ladder.json", charts);
  for (const char* piece : {"H&lt;200&gt;", "<td>fp32</td><td>20.00</td><td>10.00</td><td>1000</td><td>25.0%</td>",
                            "0.50x slower", "does not &lt;fit&gt;", "All ranks together", "1.90x", "&lt;b&gt;"})
    EXPECT_NE(part.find(piece), part.npos) << piece << "\n" << part;
  std::string scripts = charts.scripts();
  if (!scripts.empty()) {
    EXPECT_NE(scripts.find(R"("values":[2000.0,2000.0])"), scripts.npos) << "a rung that did not run has no bar";
  }
}

TEST(LadderPart, OtherFilesAreRefused) {
  TemporaryFolder folder;
  PageCharts charts;
  for (const char* text :
       {"{", "[]", R"({"rungs":[]})", R"({"machine":{"name":3},"date":"","command":"","rungs":[]})"}) {
    write_file_quickly(folder / "other.json", text);
    expect_user_error([&] { ladder_part(folder / "other.json", charts); }, {"expected the ladder.json of"});
  }
}

}  // namespace
}  // namespace tokamak
