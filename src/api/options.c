/* The functions that fill structs of options with their defaults, which the headers have beside each struct. */
#include "base/options.h"
#include "mixt/mixt.h"

#define DEFAULTS_OF(type)                                                                                              \
    void type##_default(type *options, size_t size)                                                                    \
    {                                                                                                                  \
        mixt__options_fill(options, size, &(type){MIXT_DEFAULTS_##type}, sizeof(type));                                \
    }

DEFAULTS_OF(mixt_adopt_options)
DEFAULTS_OF(mixt_advise_options)
DEFAULTS_OF(mixt_attention_options)
DEFAULTS_OF(mixt_bench_options)
DEFAULTS_OF(mixt_compare_options)
DEFAULTS_OF(mixt_context_options)
DEFAULTS_OF(mixt_controller_options)
DEFAULTS_OF(mixt_conv2d_options)
DEFAULTS_OF(mixt_conv3d_options)
DEFAULTS_OF(mixt_convert_options)
DEFAULTS_OF(mixt_cross_entropy_options)
DEFAULTS_OF(mixt_ctc_options)
DEFAULTS_OF(mixt_data_arrays)
DEFAULTS_OF(mixt_data_options)
DEFAULTS_OF(mixt_debug_options)
DEFAULTS_OF(mixt_distill_options)
DEFAULTS_OF(mixt_embedding_options)
DEFAULTS_OF(mixt_export_options)
DEFAULTS_OF(mixt_generator_options)
DEFAULTS_OF(mixt_gru_options)
DEFAULTS_OF(mixt_kl_options)
DEFAULTS_OF(mixt_linear_options)
DEFAULTS_OF(mixt_lstm_options)
DEFAULTS_OF(mixt_matmul_options)
DEFAULTS_OF(mixt_model_options)
DEFAULTS_OF(mixt_monitor_options)
DEFAULTS_OF(mixt_norm_options)
DEFAULTS_OF(mixt_page_options)
DEFAULTS_OF(mixt_param_options)
DEFAULTS_OF(mixt_pool_options)
DEFAULTS_OF(mixt_ranking_options)
DEFAULTS_OF(mixt_reduce_options)
DEFAULTS_OF(mixt_restore_options)
DEFAULTS_OF(mixt_rnn_options)
DEFAULTS_OF(mixt_rotary_options)
DEFAULTS_OF(mixt_run_options)
DEFAULTS_OF(mixt_search_options)
DEFAULTS_OF(mixt_sensitivity_options)
DEFAULTS_OF(mixt_stats_bootstrap_options)
DEFAULTS_OF(mixt_trainer_options)
DEFAULTS_OF(mixt_table_options)
DEFAULTS_OF(mixt_translate_options)
DEFAULTS_OF(mixt_verify_options)
DEFAULTS_OF(mixt_zoo_options)
