/// Smoothed curves: the exponential moving average that training logs are usually read with.
#pragma once

#include <string>

#include "viewer/model/pyramid.h"

namespace nanquest::viewer {

inline constexpr double kMostSmoothing = 0.999;

/// The average of each value and all before it, in which a value weighs `weight` times as much as the one
/// after it (0 ≤ weight < 1); the first value is itself. What is not finite stays as it is and has no weight.
Pyramid smoothed(const Pyramid& values, double weight);

/// The next of the usual weights, or the one before (`by` below 0): 0, 0.5, 0.8, 0.9, … kMostSmoothing.
double smoothing_after(double now, int by);

/// "exponential moving average, weight 0.9".
std::string smoothing_text(double weight);

}  // namespace nanquest::viewer
