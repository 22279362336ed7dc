/// generator: random numbers by counting, as in Philox: a seed and an offset determine all, and a launch
/// increases the offset by what it may draw. A kernel computes on its own (seed, offset) whenever it runs.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <functional>

namespace nqdev {

/// The default generator of a device.
const at::Generator& default_generator(int device);
at::Generator new_generator(int device);

/// Where a launch begins to draw.
struct Draw {
  std::uint64_t seed = 0, offset = 0;
};
/// Takes room for `numbers` numbers from the generator (undefined: the device's default one).
Draw reserve(const at::Generator& generator, int device, std::uint64_t numbers);

/// A CPU generator that gives what is drawn at this place.
at::Generator generator_at(const Draw& draw);
/// Runs `kernel` with the CPU's default generator at this place, and puts that generator back.
void with_default_generator_at(const Draw& draw, const std::function<void()>& kernel);

}  // namespace nqdev
