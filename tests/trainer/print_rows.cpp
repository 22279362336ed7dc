// print_rows PATH CONTEXT: a line of JSON for each row that there is to train on, as the trainer sees it,
// held-out ones among them; for tests in Python.
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "trainer/data/open_tokens.h"

namespace {

std::vector<std::int64_t> numbers(const at::Tensor& t) {
  if (!t.defined()) return {};
  const at::Tensor row = t.select(0, 0).contiguous();
  return {row.const_data_ptr<std::int64_t>(), row.const_data_ptr<std::int64_t>() + row.numel()};
}

}  // namespace

int main(int argc, char** argv) {
  using namespace nanquest::trainer;
  if (argc != 3) return 2;
  const auto data = open_tokens(argv[1], {.context = std::atoll(argv[2]), .seed = 1, .eval_every = 0});
  if (!data) {
    std::fprintf(stderr, "%s\n", data.error().text().c_str());
    return nanquest::exit_code(data.error().code);
  }
  for (std::int64_t i = 0; i < (*data)->train_rows(); ++i) {
    const TokenRows rows = (*data)->train_batch(i, 1);
    std::printf("%s\n", nlohmann::json{{"id", rows.ids.at(0)},
                                       {"tokens", numbers(rows.tokens)},
                                       {"targets", numbers(rows.targets)},
                                       {"positions", numbers(rows.positions)},
                                       {"texts", numbers(rows.parts)}}
                            .dump()
                            .c_str());
  }
  return 0;
}
