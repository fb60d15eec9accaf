#line 187 "docs/c-api.md"
#include <mixt/mixt.h>
#include <stdio.h>

static mixt_status watch(void *user, mixt_run *run, const mixt_event *event)
{
    (void)user;
    if (event->kind == MIXT_EVENT_VALIDATION && event->validation->accuracy > 0.99)
        mixt_run_ask_stop(run); // after the update that is under way; weights are saved
    return MIXT_OK;             // anything else ends the run with that status
}

int main(void)
{
    mixt_run *run;
    mixt_run_result result;
    const char *settings[] = {"train.epochs=10", "train.checkpoint_every=100", NULL};
    mixt_status status =
        mixt_run_open("configs/digits.yaml", &run, .settings = settings, .observer = watch);
    if (status == MIXT_OK)
        status = mixt_run_train(run, &result);
    if (status == MIXT_OK)
        printf("%s: validation loss %.4f\n", mixt_run_describe(run).folder, result.val_loss);
    else
        fprintf(stderr, "%s\n", mixt_error_text());
    mixt_run_close(run);
    return status != MIXT_OK;
}
