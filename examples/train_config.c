/* Trains what a YAML file describes, prints its own progress and stops at a target accuracy.
 * Usage: train_config [CONFIG.yaml [key=value …]] */
#include <mixt/mixt.h>
#include <stdio.h>

static const double target = 0.9;

static mixt_status watch(void *user, mixt_run *run, const mixt_event *event)
{
    if (event->kind == MIXT_EVENT_STEP && event->step->step % 50 == 0)
        printf("update %lld: loss %.4f\n", (long long)event->step->step, event->step->loss);
    if (event->kind == MIXT_EVENT_VALIDATION) {
        printf("update %lld: accuracy %.2f%%\n", (long long)event->step->step, 100 * event->validation->accuracy);
        if (event->validation->accuracy >= target) {
            *(bool *)user = true;
            mixt_run_ask_stop(run);
        }
    }
    return MIXT_OK;
}

int main(int argc, char **argv)
{
    mixt_run *run;
    bool reached = false;
    mixt_status status = mixt_run_open(argc > 1 ? argv[1] : "configs/digits.yaml", &run, .observer = watch,
                                       .user = &reached, .settings = argc > 2 ? (const char **)argv + 2 : NULL);
    if (status == MIXT_OK)
        status = mixt_run_train(run, NULL);
    if (status == MIXT_OK)
        printf("%s: %s\n", mixt_run_describe(run).folder, reached ? "target reached" : "target not reached");
    else
        fprintf(stderr, "%s\n", mixt_error_text());
    mixt_run_close(run);
    return status == MIXT_OK && reached ? 0 : 1;
}
