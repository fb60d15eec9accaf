#line 264 "docs/c-api.md"
#include <mixt/plan.h>
#include <stdio.h>

void print_products(const mixt_trainer *trainer, const char *layers) // "h.*.attn*"
{
    mixt_plan_node node;
    for (int64_t i = 0; (i = mixt_plan_next(trainer, layers, i)) >= 0; i++)
        if (mixt_plan_node_at(trainer, i, &node) == MIXT_OK && node.matrix)
            printf("%s: %s in %s by %s\n", node.layer, node.op, mixt_dtype_name(node.arithmetic),
                   node.kernel);
}
