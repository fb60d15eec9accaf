#line 148 "docs/c-api.md"
#include <mixt/zoo.h>

mixt_trainer *small_gpt(mixt_context *context, mixt_data *text)
{
    mixt_model *model = mixt_zoo_model(context, "gpt", text, .layers = 4, .width = 256);
    return model ? mixt_trainer_new(model, .precision = "bf16") : NULL;
}
