// The JSON that the program keeps for itself: data.json, the ledger and index.json, as the first byte says. What is
// accepted is written back as what was read.
#include "data/ledger.h"
#include "data/token_shard_index.h"
#include "tests/fuzz/fuzz_file.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

using namespace tokamak;

namespace {

void try_record(std::string_view text) {
  DataRecord record = data_record_from_json(text, "data.json");
  record.order().at(1'000'000);
  std::string written = to_json(record);
  if (to_json(data_record_from_json(written, "data.json")) != written) fuzz_failure("another record comes back");
}

void try_ledger(std::string_view text) {
  std::vector<LedgerLine> lines;
  for (; !text.empty(); text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1)) {
    LedgerLine line = parse_ledger_line(text.substr(0, text.find('\n')), "ledger.jsonl");
    if (parse_ledger_line(format_ledger_line(line), "ledger.jsonl") != line) fuzz_failure("another line comes back");
    // Only lines whose chain fits are looked at further.
    line.chain = ledger_chain(lines.empty() ? "" : lines.back().chain, line);
    lines.push_back(line);
  }
  replay_ledger(lines, {.seed = 1, .context = 4, .datasets = {{.path = "a", .share = {100, kMixtureBlock}}}});
}

void try_index(std::string_view text) {
  static const MemoryFolder folder;
  write_file_quickly(folder.path() / kIndexFile, text);
  std::string written = format_token_shard_index(read_token_shard_index(folder.path(), IndexSources::kRead));
  write_file_quickly(folder.path() / kIndexFile, written);
  if (format_token_shard_index(read_token_shard_index(folder.path(), IndexSources::kRead)) != written)
    fuzz_failure("another index comes back");
  TokenShardIndex all = read_token_shard_index(folder.path(), IndexSources::kRead);
  all.train.sources.clear(), all.val.sources.clear();
  if (format_token_shard_index(read_token_shard_index(folder.path())) != format_token_shard_index(all))
    fuzz_failure("without its sources an index says something else");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] == 'r') try_record(text);
    if (data[0] == 'l') try_ledger(text);
    if (data[0] == 'i') try_index(text);
  } catch (const UserError&) {
  }
  return 0;
}
