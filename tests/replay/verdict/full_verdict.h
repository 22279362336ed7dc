/// A verdict in which every field says something.
#pragma once

#include <cmath>

#include "replay/verdict/verdict.h"

namespace nanquest::testing {

inline Verdict full_verdict() {
  Verdict v;
  v.snapshot = "run/incidents/step-00000131.r0.h5";
  v.step = 131;
  v.rank = 1;
  v.unseen = {3, {{"aten::mul", 2}, {"aten::add_", 1}}, true, 4};
  v.reproduction = {true, Basis::survivors, 752, 3, 2, 17, {"num_threads: recorded 8, here 2"}};
  v.reproduction.elsewhere = {"cuda:0", "cpu", 0.03125, 0.0004, 2};
  v.reproduction.failed_ops = 1;
  v.phase = Phase::backward;
  v.culprit = {"aten::mm",         412, "MmBackward0", "blocks.3.mlp",        "", "fc.weight",
               BadValue::plus_inf, 17,  {0, 3},        {"mlp.cpp:12 forward"}};
  v.origin = Origin::parameter;
  v.claims = {{Label::fp16_overflow, {"amax 1.2e+05"}, {}}, {Label::domain, {}, {"no argument is negative"}}};
  v.blame = {true,
             {{"aten::mm", 412, "blocks.3.mlp", Phase::backward, ""}},
             {{"aten::masked_fill", 7, "", Phase::forward, "mask"}},
             3,
             {{"c10d::allreduce_", 430, "", Phase::backward, ""}}};
  v.root = RootCause{Label::divergence,
                     "lr=*0.5",
                     64,
                     Scope::run,
                     true,
                     {"lr=*0.5", "clip=1"},
                     {"lr=*0.5", "clip=1", "skip=131"},
                     "with lr=*0.5 it goes on",
                     "step-00000131.r0.rehearsal.json"};
  v.cause = Label::fp16_overflow;
  v.confidence = 0.987654;
  v.explanation = "aten::mm computes 1.2e+05, but fp16 ends at 65504.";
  v.source = "IEEE 754";
  v.advice = "Keep it in fp32.";
  v.precision = {PrecisionResult::finite, PrecisionResult::non_finite, PrecisionVerdict::delayed};
  v.evidence = {{"amax", "1.2e+05", "65504"}, {"growth", "up", "", {1, std::nan(""), 4}}};
  v.counterfactuals = {{"op in fp32", ChangeKind::precision, TrialResult::finite, Scope::op, 1},
                       {"other op in fp32", ChangeKind::placebo, TrialResult::non_finite, Scope::run, 64}};
  v.fix = Fix{"op in fp32", "Keep it in fp32.", Scope::run, true, true, true};
  v.poison = {17};
  v.poison_ids = {"a.txt:\xff|9"};
  v.batch = 32;
  v.not_tested = {"the root cause"};
  v.ranks = Ranks{4,
                  false,
                  "c10d::allreduce_",
                  400,
                  RankCulprit{2, "aten::mm", "head", 17, "step-00000131.r2.h5", Origin::buffer, "mean", 130},
                  {{2, "step-00000131.r2.h5"}},
                  {1},
                  {3},
                  "Rank 2 was first."};
  return v;
}

}  // namespace nanquest::testing
