#include "trainer/precision/autocast.h"

#include <ATen/autocast_mode.h>

namespace nanquest::trainer {

AutocastGuard::AutocastGuard(at::DeviceType device, at::ScalarType dtype)
    : device_(device),
      enabled_before_(at::autocast::is_autocast_enabled(device)),
      dtype_before_(at::autocast::get_autocast_dtype(device)) {
  const bool on = dtype != at::kFloat;
  at::autocast::increment_nesting();
  if (on) at::autocast::set_autocast_dtype(device, dtype);
  at::autocast::set_autocast_enabled(device, on);
}

AutocastGuard::~AutocastGuard() {
  at::autocast::set_autocast_enabled(device_, enabled_before_);
  at::autocast::set_autocast_dtype(device_, dtype_before_);
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
}

}  // namespace nanquest::trainer
