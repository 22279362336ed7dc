// repro of every kind of op: what it writes in place, to lists and to out=, random numbers, memory that is
// strided, expanded, overlapping or shared, numbers in the place of tensors, formats. None of these has to go
// wrong: what is asked is that the programs give the recorded bits.
#include <ATen/ATen.h>

#include <functional>

#include "probe/record/record.h"
#include "tests/replay/report/repro_set.h"

namespace nanquest {
namespace {

using testing::Output;

struct Kind {
  std::string name, op;  ///< the op to be shown, the last of this name in the step
  std::function<void()> step;
  bool bad = true;             ///< something that is not finite comes out
  std::string in_python = {};  ///< part of the Python program
};

at::Tensor ramp(at::IntArrayRef shape) {
  return at::arange(c10::multiply_integers(shape), at::kFloat).reshape(shape);
}

/// Ops whose results are not needed.
template <class T>
void keep(T&&) {}

std::vector<Kind> kinds() {
  const at::Tensor x = ramp({12, 10}), zeros = at::zeros({4});
  std::vector<Kind> all;
  all.push_back({"in_place", "aten::log_", [=] { x.clone().log_(); }});
  all.push_back({"out", "aten::div", [=] {
                   at::Tensor to = at::empty({4});
                   at::div_out(to, zeros, zeros);
                 }});
  all.push_back({"to_lists", "aten::_foreach_log_",
                 [=] {
                   at::_foreach_log_({x.clone(), zeros.clone()});
                 },
                 true, "WRITTEN = [\"self\"]"});
  all.push_back({"from_lists", "aten::_foreach_div", [=] {
                   keep(at::_foreach_div({x, zeros}, {x, zeros}));
                 }});
  all.push_back({"fused", "aten::_fused_adam_",
                 [=] {
                   const at::Tensor p = ramp({6}), g = at::full({6}, 1e30), m = at::zeros({6}),
                                    v = at::zeros({6});
                   const at::Tensor step = at::ones({});
                   at::_fused_adam_({p}, {g}, {m}, {v}, {}, {step}, 0.1, 0.9, 0.999, 0., 1e-8, false, false);
                 },
                 true, "WRITTEN = [\"self\""});
  all.push_back({"shared", "aten::div_",
                 [] {
                   const at::Tensor m = ramp({4, 6});
                   m.narrow(0, 2, 2).div_(m.narrow(0, 0, 2));
                 },
                 true, "memory0.as_strided("});
  all.push_back({"drawn", "aten::native_dropout", [=] { keep(at::native_dropout(x / 0, 0.5, true)); }, true,
                 "torch.set_rng_state("});
  all.push_back({"drawn_in_place", "aten::normal_", [] { at::empty({100}).normal_(); }, false});
  all.push_back({"strided", "aten::exp", [=] { keep(at::exp(x.t().narrow(0, 2, 5))); }, true, "strided("});
  all.push_back({"expanded", "aten::log",
                 [=] {
                   keep(at::log(x.narrow(0, 0, 1).expand({3, 10})));
                 },
                 true, ".expand([3, 10])"});
  all.push_back({"overlapping", "aten::log",
                 [=] {
                   keep(at::log(x.as_strided({9, 4}, {1, 1})));
                 },
                 true, ".as_strided([9, 4], [1, 1], 0)"});
  all.push_back(
      {"channels_last", "aten::convolution",
       [] {
         const at::Tensor picture = (ramp({2, 3, 6, 6}) * 1e36).contiguous(at::MemoryFormat::ChannelsLast);
         at::conv2d(picture, ramp({4, 3, 3, 3}));
       },
       true, "[108, 1, 18, 3]"});
  all.push_back({"number", "aten::mul", [] { at::full({}, 1e30).mul(1e30); }, true, "\"other\": 1e+30"});
  all.push_back({"complex", "aten::div",
                 [=] { keep(at::div(at::complex(zeros, zeros + 1), at::complex(zeros, zeros))); }, true,
                 "torch.view_as_complex("});
  all.push_back({"conjugated", "aten::mul",
                 [=] {
                   const at::Tensor z = at::complex(x * 1e38, x);
                   keep(at::mul(z.conj(), z));
                 },
                 true, ".conj()"});
  all.push_back(
      {"cast", "aten::_to_copy", [=] { keep((x * 1e4).to(at::kHalf)); }, true, "\"dtype\": torch.float16"});
  all.push_back({"bfloat16", "aten::mul",
                 [=] { keep(at::mul(x.to(at::kBFloat16), at::full({10}, 3e38).to(at::kBFloat16))); }});
  all.push_back({"float8", "aten::_to_copy", [=] { keep(ramp({8}).to(at::kFloat8_e5m2).to(at::kFloat)); },
                 false, "torch.float8_e5m2"});
  all.push_back({"odd_nan", "aten::neg",
                 [] {
                   const at::Tensor t = at::full({2}, 0x7fc12345, at::kInt).view(at::kFloat);
                   keep(at::neg(t));
                 },
                 true, "bits(\""});
  all.push_back({"indices", "aten::index",
                 [=] {
                   keep(at::index(x / 0, {std::optional<at::Tensor>(), at::tensor({1, 3}, at::kLong)}));
                 },
                 true, "\"indices\": [None, "});
  all.push_back({"texts", "aten::div", [=] { keep(at::div(x, zeros.narrow(0, 0, 1), "floor")); }, true,
                 "\"rounding_mode\": \"floor\""});
  all.push_back({"scratch", "aten::_ctc_loss", [] {
                   keep(at::_ctc_loss(at::log_softmax(ramp({3, 1, 4}), 2), at::ones({1, 3}, at::kLong),
                                      at::IntArrayRef{3}, at::IntArrayRef{3}));
                 }});
  return all;
}

/// The last op of this name; kNone if there is none.
std::int32_t last_op(const SnapshotDoc& doc, const std::string& name) {
  for (std::size_t i = doc.ops.size(); i-- > 0;)
    if (doc.ops[i].name == name) return static_cast<std::int32_t>(i);
  return kNone;
}

TEST(Kinds, GiveTheRecordedBitsInBothLanguages) {
  const testing::Scratch scratch("repro_kinds");
  testing::ReproSet set(scratch);
  const std::vector<Kind> all = kinds();
  std::map<std::string, testing::Counts> recorded;
  for (const Kind& kind : all) {
    at::manual_seed(3);
    const Recording recording = record_step({}, [&] {
      kind.step();
      return at::zeros({});
    });
    const std::string snapshot = scratch / (kind.name + ".h5");
    ASSERT_TRUE(write_snapshot(recording, snapshot));
    const std::int32_t op = last_op(recording.doc, kind.op);
    ASSERT_NE(op, kNone) << kind.name << ": the step has no " << kind.op;
    const Output made = set.make(kind.name, "--op " + std::to_string(op));
    EXPECT_EQ(made.code, 0) << kind.name << ": " << made.err;
    recorded[kind.name] = testing::counts_in_file(testing::doc_of(snapshot), op);
    EXPECT_EQ(recorded[kind.name] != testing::Counts{}, kind.bad) << kind.name;
    const std::string python = testing::slurp(scratch / (kind.name + ".repro.py"));
    EXPECT_NE(python.find(kind.in_python), std::string::npos) << kind.name << "\n" << python.substr(0, 3000);
  }
  set.compile();
  if (::testing::Test::HasFatalFailure()) return;
  for (const std::string& name : set.names())
    testing::expect_recorded(set.cpp(name), recorded[name], name + " in C++");
#ifdef NANQUEST_PYTHON
  for (const auto& [name, output] : set.python())
    testing::expect_recorded(output, recorded[name], name + " in Python");
#endif
}

TEST(Kinds, WhatCanNotBeRunAloneIsRefusedWithTheReason) {
  const testing::Scratch scratch("repro_refused");
  testing::ReproSet set(scratch);
  const Recording recording = record_step({}, [] {
    const at::Tensor indices = at::arange(2).reshape({1, 2});
    const at::Tensor sparse = at::sparse_coo_tensor(indices, at::ones({2}), {2});
    (void)at::mul(sparse, sparse);
    return at::zeros({});
  });
  ASSERT_TRUE(write_snapshot(recording, scratch / "sparse.h5"));
  std::int32_t op = kNone;
  for (std::size_t i = 0; i < recording.doc.ops.size(); ++i)
    if (recording.doc.ops[i].flags & kOpOpaque) op = static_cast<std::int32_t>(i);
  ASSERT_NE(op, kNone);
  const Output refused = set.make("sparse", "--op " + std::to_string(op));
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("is no plain memory (sparse"), std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(scratch / "sparse.repro.py"));
}

#ifdef NANQUEST_PYTHON
/// A script that has lost its tensors, and one that is handed a device that is not there, must not end with
/// the exit code of a finding.
TEST(Kinds, AScriptThatCanNotRunDoesNotEndAsOneThatShowsSomething) {
  const testing::Scratch scratch("repro_broken");
  testing::ReproSet set(scratch);
  const Recording recording = record_step({}, [] {
    keep(at::log(ramp({100})));
    return at::zeros({});
  });
  for (const char* name : {"whole", "lost"}) {
    ASSERT_TRUE(write_snapshot(recording, scratch / (std::string(name) + ".h5")));
    ASSERT_EQ(set.make(name, "--op " + std::to_string(last_op(recording.doc, "aten::log"))).code, 0);
  }
  std::filesystem::remove(scratch / "lost.repro.safetensors");
  auto ended = set.python("nosuchdevice");
  EXPECT_EQ(ended["whole"].code, 2) << ended["whole"].out;
  EXPECT_NE(ended["whole"].out.find("can't be run: "), std::string::npos) << ended["whole"].out;
  EXPECT_EQ(ended["lost"].code, 3);
  EXPECT_NE(ended["lost"].out.find("belongs beside this script"), std::string::npos) << ended["lost"].out;
}
#endif

}  // namespace
}  // namespace nanquest
