// What is bad, since when, and which step did it.
#include "probe/step/state_check.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace nanquest {
namespace {

struct Program {
  at::Tensor weight = at::ones({4}), mean = at::zeros({4}), moment = at::zeros({4});
  StateCheck check{{{StateCheck::kParameter,
                     [this] {
                       return NamedTensors{{"w", weight}};
                     }},
                    {StateCheck::kBuffer,
                     [this] {
                       return NamedTensors{{"mean", mean}};
                     }},
                    {StateCheck::kMoment,
                     [this] {
                       return NamedTensors{{"exp_avg.w", moment}};
                     }}},
                   /*every=*/50};
  using Names = StateCheck::Names;

  static StateCheck::Blame nobody() { return {}; }
};

TEST(StateCheck, says_what_is_bad_now) {
  Program p;
  EXPECT_TRUE(p.check.bad_now().empty());
  p.moment[1] = std::nan("");
  p.weight[0] = INFINITY;
  EXPECT_EQ(p.check.bad_now(), (Program::Names{"parameter w", "optimizer state exp_avg.w"}));
  EXPECT_EQ(p.check.bad_now(StateCheck::kMoment), (Program::Names{"optimizer state exp_avg.w"}));
  EXPECT_EQ(p.check.bad_after(7, StateCheck::kMoment), "optimizer state exp_avg.w")
      << "small, on the CPU: always";
  EXPECT_EQ(p.check.bad_after(7, StateCheck::kBuffer), "");
}

TEST(StateCheck, looks_at_large_parts_now_and_then) {
  Program p;
  p.moment = at::zeros({(1 << 20) + 1});
  p.moment[3] = std::nan("");
  EXPECT_FALSE(p.check.bad_after(7, StateCheck::kMoment));
  EXPECT_EQ(p.check.bad_after(100, StateCheck::kMoment), "optimizer state exp_avg.w");
  StateCheck never({{StateCheck::kMoment, [&] { return NamedTensors{{"m", p.moment}}; }}}, 0);
  EXPECT_FALSE(never.bad_after(100, StateCheck::kMoment));
  EXPECT_FALSE(never.due(100));
}

TEST(StateCheck, knows_what_was_bad_before_the_first_update) {
  Program p;
  p.mean[0] = std::nan("");
  EXPECT_FALSE(p.check.beginning_known());
  EXPECT_EQ(text_of(p.check.began(0, p.check.bad_now(), /*told=*/false)).find("step 0: buffer mean held NaN"),
            0u);
  EXPECT_TRUE(p.check.beginning_known());
  EXPECT_FALSE(p.check.began_well());
  EXPECT_TRUE(p.check.since_beginning(p.check.bad_now()));
  p.weight[0] = std::nan("");
  EXPECT_FALSE(p.check.since_beginning(p.check.bad_now()));
  EXPECT_FALSE(p.check.since_beginning({}));
}

TEST(StateCheck, tells_news_from_what_the_last_incident_left_behind) {
  Program p;
  p.weight[0] = std::nan("");
  const Program::Names bad = p.check.bad_now();
  EXPECT_FALSE(p.check.of_last_incident(bad, /*update_made=*/false, Program::nobody));
  p.check.incident(/*gate_failed=*/true);
  p.check.left_behind(bad);
  EXPECT_EQ(p.check.of_last_incident(bad, false, Program::nobody), bad);
  EXPECT_EQ(
      text_of({p.check.carried_on(9, bad, 4)}).find("step 9: parameter w is still NaN or Inf from step 4"),
      0u);
  // A watched step shows another culprit.
  EXPECT_FALSE(p.check.of_last_incident(bad, false, [] { return StateCheck::Blame{.known = true}; }));
  EXPECT_EQ(p.check.of_last_incident(bad, false,
                                     [] { return StateCheck::Blame{.known = true, .state = "parameter w"}; }),
            bad);
  // A good step's update spoiled more.
  p.mean[0] = std::nan("");
  EXPECT_FALSE(p.check.of_last_incident(p.check.bad_now(), /*update_made=*/true, Program::nobody));
  p.check.incident(true);
  EXPECT_FALSE(p.check.carries_on(bad)) << "the next incident forgets";
}

TEST(StateCheck, damage_that_gets_nowhere_carries_nothing_on) {
  Program p;
  p.mean[0] = std::nan("");
  p.check.incident(/*gate_failed=*/true);
  p.check.left_behind(p.check.bad_now());
  EXPECT_TRUE(p.check.of_last_incident(p.check.bad_now(), false, Program::nobody));
  EXPECT_FALSE(p.check.of_last_incident(p.check.bad_now(), false,
                                        [] { return StateCheck::Blame{.damage_matters = false}; }));
}

TEST(StateCheck, an_update_by_a_damaged_moment_is_no_news) {
  Program p;
  p.moment[0] = std::nan("");
  p.check.incident(true);
  p.check.left_behind(p.check.bad_now());
  p.weight[0] = std::nan("");
  const auto by_moment = [] {
    return StateCheck::Blame{.known = true, .state = "optimizer state exp_avg.w"};
  };
  EXPECT_TRUE(p.check.of_last_incident(p.check.bad_now(), /*update_made=*/true, by_moment));
  EXPECT_FALSE(p.check.of_last_incident(p.check.bad_now(), true, Program::nobody));
}

TEST(StateCheck, steps_that_are_bad_anew_by_the_same_op_are_a_row) {
  Program p;
  const StateCheck::Blame cast{.known = true, .by_op = true, .op = "aten::_to_copy", .module = "2"};
  EXPECT_FALSE(p.check.repeats(4, cast));
  p.check.was_bad(4, cast);
  EXPECT_EQ(p.check.repeats(5, cast), 4);
  EXPECT_EQ(p.check.repeats(6, {}), 4) << "nobody watched it, right after one of the row";
  EXPECT_FALSE(p.check.repeats(8, {})) << "… and not right after one";
  EXPECT_FALSE(p.check.repeats(8, {.known = true, .by_op = true, .op = "aten::mm", .module = "2"}));
  EXPECT_FALSE(p.check.repeats(8, {.known = true})) << "a bad batch is news each time";
  EXPECT_FALSE(p.check.repeats(30, cast)) << "the row is over";
}

TEST(StateCheck, harmless_damage_that_does_harm_is_news) {
  Program p;
  p.mean[0] = std::nan("");
  p.check.incident(/*gate_failed=*/false);
  p.check.left_behind(p.check.bad_now());
  EXPECT_TRUE(p.check.of_last_incident(p.check.bad_now(), false, Program::nobody));
  p.check.was_well();
  EXPECT_FALSE(p.check.of_last_incident(p.check.bad_now(), false, Program::nobody));
}

TEST(StateCheck, more_of_what_arrives_is_no_news_until_a_step_is_good) {
  Program p;
  const auto arrives = [] { return StateCheck::Blame{.known = true, .arrived_by = "c10d::allreduce_"}; };
  p.check.incident(true);
  p.check.arrived("c10d::allreduce_");
  EXPECT_EQ(p.check.of_last_incident({}, false, arrives), Program::Names());
  EXPECT_FALSE(p.check.of_last_incident({}, false, [] { return StateCheck::Blame{.known = true}; }));
  EXPECT_NE(text_of({p.check.carried_on(2, {}, 1)}).find("what arrives by c10d::allreduce_ is still"),
            std::string::npos);
  p.check.was_well();
  EXPECT_FALSE(p.check.of_last_incident({}, false, arrives));
}

}  // namespace
}  // namespace nanquest
