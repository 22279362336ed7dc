"""A property of large models that the small ones here copy: a few activations are thousands of times larger than all others."""

LAYER, ELEMENT, NEURON = 0, 3, 5


def give_outlier(decoder):
    """Reserves the first direction of the residual stream: only selected tokens or pictures move it. Where it is large, the norm makes
    it 8, a neuron 200 * 200, and one number of layer LAYER's down_proj four times that: more than fp16 holds. `decoder` has
    embed_tokens and layers, as Llama has. Call it with gradients switched off."""
    decoder.embed_tokens.weight[:, 0] = 0
    for layer in decoder.layers:
        layer.self_attn.o_proj.weight[0] = 0
        layer.mlp.down_proj.weight[0] = 0
    mlp = decoder.layers[LAYER].mlp
    for into in (mlp.gate_proj, mlp.up_proj):
        into.weight[NEURON] = 0
        into.weight[NEURON, 0] = 25
    mlp.down_proj.weight[ELEMENT, NEURON] = 4
