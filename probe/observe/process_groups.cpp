#include "probe/observe/process_groups.h"

#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <pthread.h>

#include <array>
#include <numeric>
#include <string_view>
#include <typeinfo>

#include "probe/tensor/torch_versions.h"
#include "probe/trace/collectives.h"

namespace nanquest {
namespace {

/// By c10d::ReduceOp::RedOpType.
constexpr std::array<const char*, 9> kReductionWords = {"sum",  "avg", "product", "min",       "max",
                                                        "band", "bor", "bxor",    "premul_sum"};

std::string type_of_object(const c10::IValue& value) {
  return value.isObject() ? value.type()->annotation_str() : std::string();
}

}  // namespace

std::string words_for_object(const c10::IValue& value) try {
  const std::string type = type_of_object(value);
  if (type.ends_with(".c10d.ReduceOp")) {
    const auto op = static_cast<::c10d::ReduceOp::RedOpType>(*value.toCustomClass<::c10d::ReduceOp>());
    if (const auto row = static_cast<std::size_t>(op); row < kReductionWords.size())
      return std::string(kReduceOpText) + kReductionWords[row];
  } else if (type.ends_with(".c10d.ProcessGroup")) {
    const auto group = value.toCustomClass<::c10d::ProcessGroup>();
    const ::c10d::ProcessGroup& given = *group;
    if (typeid(given) == typeid(::c10d::ProcessGroup))
      return std::string(kProcessGroupText) + given.getGroupName();
  }
  return value.tagKind();
} catch (const std::exception&) {
  return value.tagKind();
}

bool is_thread_of_process_group() noexcept {
  static thread_local const bool is = [] {
    std::array<char, 16> name{};  // the system's limit
    return pthread_getname_np(pthread_self(), name.data(), name.size()) == 0 &&
           std::string_view(name.data()).starts_with("pt_gloo_");
  }();
  return is;
}

std::vector<std::uint64_t> ranks_of_process_group(const std::string& name) noexcept try {
  const auto group = ::c10d::resolve_process_group(name);
  const ::c10d::ProcessGroup& given = *group;
  if (typeid(given) != typeid(::c10d::ProcessGroup)) return {};
  std::vector<std::uint64_t> ranks = global_ranks_of(*group);
  if (ranks.empty()) {  // the group of all ranks
    ranks.resize(static_cast<std::size_t>(group->getSize()));
    std::iota(ranks.begin(), ranks.end(), std::uint64_t{0});
  }
  return ranks;
} catch (...) {
  return {};
}

}  // namespace nanquest
