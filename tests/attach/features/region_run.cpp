// Runs the graph of a compiled region on tensors, for tests that compare what comes out.
//
//   region_run GRAPH.json TENSORS.pt OUTPUTS.pt     (lists of tensors, as torch.save writes them)
#include <ATen/Functions.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <fstream>
#include <iostream>
#include <iterator>

#include "replay/lab/region_graph.h"

namespace {

std::string whole(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) return 2;
  const auto graph = nanquest::RegionGraph::parse(whole(argv[1]));
  if (!graph) throw std::runtime_error(graph.error().message);
  const std::string bytes = whole(argv[2]);
  const std::vector<at::Tensor> given =
      torch::jit::pickle_load(std::vector<char>(bytes.begin(), bytes.end())).toTensorVector();
  std::vector<at::Tensor> outputs = graph->run(given, {}, [](const nanquest::RegionNode&) {});
  for (at::Tensor& output : outputs)
    if (!output.defined()) output = at::empty({0});
  const std::vector<char> written = torch::jit::pickle_save(c10::List<at::Tensor>(outputs));
  std::ofstream(argv[3], std::ios::binary)
      .write(written.data(), static_cast<std::streamsize>(written.size()));
  return 0;
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
