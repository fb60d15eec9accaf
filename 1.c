#line 69 "docs/c-api.md"
#include <mixt/graph.h>

mixt_value block(mixt_builder *b, mixt_value x) // (N, F) → (N, F)
{
    int64_t features = mixt_value_dim(b, x, -1);
    mixt_scope_push(b, "block"); // its layers are block.ln and block.fc
    mixt_value y = mixt_layer_norm(b, "ln", x);
    y = mixt_gelu(b, mixt_linear(b, "fc", y, .features = features));
    mixt_scope_pop(b);
    return mixt_add(b, x, y);
}
