"""Small models of the families of decoders, made by transformers with weights that a formula gives: for compare_families.py and
golden_families.py. Sizes catch mistakes: fewer heads of keys than of queries, heads that are no share of the width, windows shorter
than the text."""
import os, sys
import transformers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../support'))
from hf_folder import fraction, value  # noqa: F401: of those who import this

SIZES = dict(vocab_size=67, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, intermediate_size=40,
             max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0, attn_implementation='eager')
LLAMA3 = {'rope_type': 'llama3', 'rope_theta': 500000.0, 'factor': 8.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0,
          'original_max_position_embeddings': 16}
LONG = {'rope_type': 'longrope', 'rope_theta': 10000.0, 'partial_rotary_factor': 0.75, 'short_factor': [1.0, 1.1, 1.3], 'long_factor': [1.5, 2.0, 7.25],
        'original_max_position_embeddings': 16}
FAMILIES = {  # name: transformers' configuration, and what it has otherwise than SIZES
    'llama': ('Llama', {}),
    'llama3': ('Llama', dict(rope_parameters=LLAMA3, tie_word_embeddings=True, rms_norm_eps=1e-5)),
    'mistral': ('Mistral', dict(head_dim=12, sliding_window=7, rope_parameters={'rope_type': 'default', 'rope_theta': 1e6})),
    'qwen2': ('Qwen2', dict(tie_word_embeddings=True, use_sliding_window=False, sliding_window=5)),
    'qwen3': ('Qwen3', dict(head_dim=20, rope_parameters={'rope_type': 'default', 'rope_theta': 1e6})),
    'qwen3-window': ('Qwen3', dict(use_sliding_window=True, sliding_window=5, max_window_layers=0)),
    'phi3': ('Phi3', dict(rope_parameters={'rope_type': 'default', 'rope_theta': 10000.0, 'partial_rotary_factor': 0.75}, sliding_window=6)),
    'phi3-long': ('Phi3', dict(rope_parameters=LONG, original_max_position_embeddings=16)),
    'phi3-short': ('Phi3', dict(rope_parameters={**LONG, 'original_max_position_embeddings': 48, 'attention_factor': 1.25}, original_max_position_embeddings=48,
                                max_position_embeddings=48)),
    'smollm3': ('SmolLM3', dict(num_hidden_layers=5, no_rope_layer_interval=4)),
    'gemma2': ('Gemma2', dict(head_dim=12, query_pre_attn_scalar=20, sliding_window=6, attn_logit_softcapping=4.0, final_logit_softcapping=3.0)),
    'gemma3': ('Gemma3Text', dict(num_hidden_layers=7, head_dim=12, query_pre_attn_scalar=20, sliding_window=5, final_logit_softcapping=3.0,
                                  rope_parameters={'sliding_attention': {'rope_type': 'default', 'rope_theta': 10000.0},
                                                   'full_attention': {'rope_type': 'linear', 'rope_theta': 1e6, 'factor': 8.0}})),
    'olmo2': ('Olmo2', {}),
}
MODEL = {'Gemma3Text': 'Gemma3ForCausalLM'}


def center(name, config):
    """Whether a vector's numbers lie around 0: biases, and norms that count from one"""
    return not name.endswith('norm.weight') or config.startswith('Gemma')


def make(name):
    """The model, its weights filled in"""
    import numpy as np, torch
    kind, more = FAMILIES[name]
    config = getattr(transformers, kind + 'Config')(**{**SIZES, **more})
    net = getattr(transformers, MODEL.get(kind, kind + 'ForCausalLM'))(config).eval()
    tensors = dict(net.named_parameters())  # tied ones once
    for number, key in enumerate(sorted(tensors)):
        t = tensors[key]
        v = np.array([value(number, i, t.shape, center(key, kind)) for i in range(t.numel())])
        with torch.no_grad():
            t.copy_(torch.from_numpy(v.astype(np.float32)).reshape(t.shape))
    return net
