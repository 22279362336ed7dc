#include "probe/trace/names.h"

#include "probe/numerics/format.h"

namespace nanquest {

std::string_view phase_name(Phase phase) {
  constexpr std::string_view names[] = {"input", "forward", "backward", "optimizer"};
  return names[static_cast<unsigned>(phase) & 3u];
}

std::string_view origin_name(SlotOrigin origin) {
  switch (origin) {
    case SlotOrigin::input:
    case SlotOrigin::external:
      return "input";
    case SlotOrigin::parameter:
      return "parameter";
    case SlotOrigin::buffer:
      return "buffer";
    case SlotOrigin::optimizer_state:
      return "optimizer_state";
    case SlotOrigin::loss_scale:
      return "loss_scale";
    case SlotOrigin::gradient:
      return "gradient";
    case SlotOrigin::produced:
      break;
  }
  return "op";
}

BadCounts& BadCounts::operator+=(const StatsRow& stats) {
  nan += stats.nan;
  pos_inf += stats.pos_inf;
  neg_inf += stats.neg_inf;
  return *this;
}

std::string_view value_name(const BadCounts& c) {
  const int kinds = (c.nan > 0) + (c.pos_inf > 0) + (c.neg_inf > 0);
  if (kinds > 1) return "mixed";
  return c.nan ? "nan" : c.pos_inf ? "+inf" : c.neg_inf ? "-inf" : "silent";
}

std::string value_words(std::string_view value, bool one) {
  if (value == "nan") return "NaN";
  if (value == "+inf") return "+Inf";
  if (value == "-inf") return "-Inf";
  const std::string ending = one ? "" : "s";
  if (value == "mixed") return "non-finite value" + ending;
  return (value == "silent" ? "silently destroyed value" : "bad value") + ending;
}

std::string dtype_short(DType dtype) {
  if (const auto format = format_of(dtype)) return std::string(info(*format).name);
  switch (dtype) {
    case DType::int64:
      return "i64";
    case DType::int32:
      return "i32";
    case DType::int16:
      return "i16";
    case DType::int8:
      return "i8";
    case DType::uint8:
      return "u8";
    case DType::uint16:
      return "u16";
    case DType::uint32:
      return "u32";
    case DType::uint64:
      return "u64";
    case DType::complex64:
      return "c64";
    case DType::complex128:
      return "c128";
    default:
      return std::string(dtype_name(dtype));
  }
}

std::string_view layer_of(std::string_view parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? parameter : parameter.substr(0, dot);
}

}  // namespace nanquest
