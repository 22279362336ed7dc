#include "trainer/huggingface/rope_config.h"

namespace nanquest::trainer {
namespace {

constexpr std::pair<RopeType, std::string_view> kTypes[] = {{RopeType::plain, "default"},
                                                            {RopeType::linear, "linear"},
                                                            {RopeType::dynamic, "dynamic"},
                                                            {RopeType::llama3, "llama3"},
                                                            {RopeType::yarn, "yarn"}};

/// One object of parameters; missing ones are taken from `beside`.
RopeConfig read_one(const ConfigReader& given, const DecoderConfig& config, RopeConfig beside) {
  RopeConfig r = beside;
  r.type = given.word<RopeType>(given.has("rope_type") ? "rope_type" : "type", "default", kTypes);
  r.theta = given.number("rope_theta", r.theta, 1e-6);
  if (given.number("partial_rotary_factor", 1) != 1)
    given.unknown("partial_rotary_factor", std::to_string(given.number("partial_rotary_factor", 1)),
                  "1, all of a head is rotated");
  r.original_context = given.size("original_max_position_embeddings",
                                  r.original_context > 0 ? r.original_context : config.context);
  if (r.type == RopeType::plain) return r;
  r.factor = given.number("factor", 0, 1e-6);
  if (r.factor == 0 && r.type == RopeType::yarn)
    r.factor = static_cast<double>(config.context) / static_cast<double>(r.original_context);
  if (r.factor == 0) given.wrong("factor is missing");
  r.low_freq_factor = given.number("low_freq_factor", r.low_freq_factor, 1e-6);
  r.high_freq_factor = given.number("high_freq_factor", r.high_freq_factor, 1e-6);
  if (r.type == RopeType::llama3 && r.low_freq_factor == r.high_freq_factor)
    given.wrong("low_freq_factor and high_freq_factor are the same");
  r.beta_fast = given.number("beta_fast", r.beta_fast);
  r.beta_slow = given.number("beta_slow", r.beta_slow);
  if (r.beta_fast == 0) r.beta_fast = 32;
  if (r.beta_slow == 0) r.beta_slow = 1;
  r.attention_factor = given.number("attention_factor", 0);
  r.mscale = given.number("mscale", 0);
  r.mscale_all_dim = given.number("mscale_all_dim", 0);
  r.truncate = given.flag("truncate", true);
  return r;
}

}  // namespace

void read_rope(const ConfigReader& file, DecoderConfig& config) {
  const bool gemma3 = config.family == "gemma3_text";
  RopeConfig beside;
  beside.theta = file.number("rope_theta", gemma3 ? 1e6 : 1e4, 1e-6);
  beside.original_context = file.size("original_max_position_embeddings", 0);
  const char* key = file.has("rope_scaling") ? "rope_scaling" : "rope_parameters";
  RopeConfig local = beside;
  local.theta = gemma3 ? file.number("rope_local_base_freq", 1e4, 1e-6) : beside.theta;
  local.original_context = config.context;
  if (!file.has(key)) {
    if (file.number("partial_rotary_factor", 1) != 1)
      file.unknown("partial_rotary_factor", std::to_string(file.number("partial_rotary_factor", 1)),
                   "1, all of a head is rotated");
    beside.original_context = config.context;
    config.rope = beside;
    config.local_rope = local;
    return;
  }
  const ConfigReader given = file.inside(key);
  const bool by_layer = given.has("full_attention") || given.has("sliding_attention");
  if (by_layer && !gemma3) given.unknown("full_attention", "by kind of layer", "one for all layers");
  if (!by_layer) {
    config.rope = read_one(given, config, beside);
    config.local_rope = gemma3 ? local : config.rope;
    return;
  }
  config.rope =
      given.has("full_attention") ? read_one(given.inside("full_attention"), config, beside) : beside;
  config.local_rope =
      given.has("sliding_attention") ? read_one(given.inside("sliding_attention"), config, local) : local;
}

}  // namespace nanquest::trainer
