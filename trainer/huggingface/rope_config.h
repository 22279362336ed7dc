/// The part of config.json about positions, in its old form (rope_scaling beside rope_theta) and its new one
/// (rope_parameters). Inside this room only.
#pragma once

#include "trainer/huggingface/config_reader.h"
#include "trainer/huggingface/decoder_config.h"

namespace nanquest::trainer {

/// Fills in `rope` and `local_rope` of `config`, whose family, context and widths are known. Throws Refused.
void read_rope(const ConfigReader& file, DecoderConfig& config);

}  // namespace nanquest::trainer
