#include "probe/attach/region_graphs.h"

#include <ATen/ATen.h>

#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "probe/observe/op_traits.h"
#include "probe/trace/regions.h"

namespace nanquest::attach {
namespace {

struct Graphs {
  std::mutex mutex;  // backward graphs may be compiled on an autograd thread
  std::map<std::int64_t, std::string> told;
};

Graphs& graphs() {
  static auto* one = new Graphs();  // leaked on purpose: LibTorch may be unloaded before static destructors
                                    // run
  return *one;
}

at::Tensor bytes_of(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  if (!text.empty()) std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  return bytes;
}

}  // namespace

void keep_region_graph(std::int64_t number, std::string graph) {
  const std::lock_guard<std::mutex> lock(graphs().mutex);
  graphs().told[number] = std::move(graph);
}

void add_region_graphs(Recording& recording) {
  std::set<std::int64_t> ran;
  for (const OpRow& op : recording.doc.ops)
    if (op.name == kCompiledRegion) ran.insert(region_call(recording.doc, op).graph);
  const std::lock_guard<std::mutex> lock(graphs().mutex);
  for (const std::int64_t number : ran)
    if (const auto graph = graphs().told.find(number); graph != graphs().told.end())
      recording.data.emplace_back(region_graph_path(number), bytes_of(graph->second));
}

}  // namespace nanquest::attach
