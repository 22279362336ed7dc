// print_rows PATH CONTEXT: a line of JSON for each row, as the trainer sees it, including held-out ones;
// CONTEXT "pictures" for pictures with labels. For tests in Python.
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trainer/data/open_tokens.h"
#include "trainer/data/picture_data.h"

namespace {

std::vector<std::int64_t> numbers(const at::Tensor& t) {
  if (!t.defined()) return {};
  const at::Tensor row = t.select(0, 0).contiguous();
  return {row.const_data_ptr<std::int64_t>(), row.const_data_ptr<std::int64_t>() + row.numel()};
}

int refused(const nanquest::Error& error) {
  std::fprintf(stderr, "%s\n", error.text().c_str());
  return nanquest::exit_code(error.code);
}

int print_pictures(const std::string& path) {
  using namespace nanquest::trainer;
  const auto data = PictureData::open(path, {.seed = 1, .eval_every = 0});
  if (!data) return refused(data.error());
  for (std::int64_t i = 0; i < (*data)->train_rows(); ++i) {
    const PictureRows rows = (*data)->train_batch(i, 1);
    const float* pixels = rows.pixels.const_data_ptr<float>();
    std::printf("%s\n", nlohmann::json{{"id", rows.ids.at(0)},
                                       {"picture", rows.texts.at(0)},
                                       {"label", rows.labels.const_data_ptr<std::int64_t>()[0]},
                                       {"tokens", (*data)->question()},
                                       {"answers", {(*data)->no(), (*data)->yes()}},
                                       {"pixels", std::vector<float>(pixels, pixels + rows.pixels.numel())}}
                            .dump()
                            .c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace nanquest::trainer;
  if (argc != 3) return 2;
  if (std::string(argv[2]) == "pictures") return print_pictures(argv[1]);
  const auto data = open_tokens(argv[1], {.context = std::atoll(argv[2]), .seed = 1, .eval_every = 0});
  if (!data) return refused(data.error());
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
