#include "probe/step/forecast.h"

#include <gtest/gtest.h>

#include <cmath>

namespace nanquest {
namespace {

using record::RangePlace;
using record::SeenRange;

const ModuleName kBlock{"blocks.3", "Block"}, kOther{"blocks.4", "Block"};

const OpTraits& traits(const char* name) {
  return traits_of(c10::Dispatcher::singleton().findSchemaOrThrow(name, ""));
}

RangePlace place(const ModuleName& module, DType type = DType::float16) {
  return {&traits("aten::bmm"), &module, Phase::forward, type};
}

SeenRange range(const RangePlace& where, double amax) {
  SeenRange seen{where};
  seen.amax = amax;
  seen.elements = 100;
  return seen;
}

/// What leaves fp16 in step `end`, with `rate` bits a step.
double growing(std::int64_t step, std::int64_t end, double rate) {
  return 65504 * std::exp2(rate * static_cast<double>(step - end));
}

TEST(Forecast, names_the_place_and_the_step_of_steady_growth) {
  Forecast forecast;
  std::optional<Foreseen> found;
  for (std::int64_t step = 0; step < 100 && !found; ++step)
    found = forecast.take(step, {range(place(kBlock), growing(step, 100, 0.11)), range(place(kOther), 20)}, true, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->place, place(kBlock));
  EXPECT_EQ(found->step, 70);  // 3.5 bits at 0.11 a step are 31 steps, and twice in a row
  EXPECT_NEAR(found->reach.steps, 30, 1e-6);
  EXPECT_NEAR(found->bits, 3.3, 1e-6);
  EXPECT_EQ(found->text().find("aten::bmm in blocks.3 (forward, float16) reaches the end of fp16 in about 30 steps"), 0u)
      << found->text();
}

TEST(Forecast, tells_a_place_once_and_not_those_that_follow_it) {
  Forecast forecast;
  int told = 0;
  for (std::int64_t step = 0; step < 98; ++step)
    told += forecast.take(step, {range(place(kBlock), growing(step, 100, 0.1)), range(place(kOther), growing(step, 105, 0.1))},
                          true, {}).has_value();
  EXPECT_EQ(told, 1);
}

TEST(Forecast, is_silent_about_what_is_near_but_stays) {
  Forecast forecast;
  for (std::int64_t step = 0; step < 400; ++step) {
    const double noise = 1 + 0.2 * std::sin(static_cast<double>(step * step));
    EXPECT_FALSE(forecast.take(step, {range(place(kBlock), 30000 * noise), range(place(kOther), 65504)}, true, {}));
  }
}

TEST(Forecast, is_silent_about_growth_far_from_the_end) {
  Forecast forecast;
  for (std::int64_t step = 0; step < 100; ++step)
    EXPECT_FALSE(forecast.take(step, {range(place(kBlock), growing(step, 200, 0.1))}, true, {}));
  for (std::int64_t step = 100; step < 200; ++step)  // the same numbers are far from fp32's end
    EXPECT_FALSE(forecast.take(step, {range(place(kOther, DType::float32), growing(step, 200, 0.1))}, true, {}));
}

TEST(Forecast, asks_whether_it_would_do_harm) {
  Forecast forecast;
  int asked = 0;
  for (std::int64_t step = 0; step < 99; ++step)
    EXPECT_FALSE(forecast.take(step, {range(place(kBlock), growing(step, 100, 0.1))}, true,
                               [&](const RangePlace& where) { return ++asked, where == place(kBlock); }));
  EXPECT_EQ(asked, 1);
}

TEST(Forecast, looks_more_often_the_nearer_it_gets) {
  Forecast forecast;
  EXPECT_FALSE(forecast.due(8));
  for (std::int64_t step = 0; step < 3; ++step)
    forecast.take(step, {range(place(kBlock), growing(step, 100, 0.1)), range(place(kOther), 65504)}, true, {});
  ASSERT_EQ(forecast.nearest(), std::vector{place(kBlock)});  // the other never moves: a mask
  EXPECT_TRUE(forecast.due(8));
  EXPECT_FALSE(forecast.due(9));
  forecast.take(60, {range(place(kBlock), growing(60, 100, 0.1))}, true, {});
  EXPECT_TRUE(forecast.due(61));
}

}  // namespace
}  // namespace nanquest
