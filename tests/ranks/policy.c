/* A run whose observers ask for another policy on some ranks. Usage, under mpirun: ranks_policy CONFIG OUT POLICY...,
 * the policy that each rank asks for after update 2, "-": none. */
#include "mixt/mixt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mixt_status watch(void *user, mixt_run *run, const mixt_event *event)
{
    mixt_policy *policy;
    const char *name = user;
    if (event->kind == MIXT_EVENT_NOTE && event->warning)
        printf("%s\n", event->text);
    if (event->kind != MIXT_EVENT_STEP || event->step->step != 2 || !strcmp(name, "-"))
        return MIXT_OK;
    if (mixt_policy_named(name, &policy) != MIXT_OK)
        return MIXT_ERROR_ARGUMENT;
    mixt_status status = mixt_run_ask_policy(run, policy);
    mixt_policy_free(policy);
    return status;
}

int main(int count, char **arguments)
{
    char out[256];
    mixt_run *run;
    int rank = mixt_ranks_find().rank;
    if (count < 4 + rank)
        return 2;
    snprintf(out, sizeof out, "out=%s", arguments[2]);
    const char *settings[] = {out, NULL};
    mixt_status status = mixt_run_open(arguments[1], &run, .observer = watch, .user = arguments[3 + rank],
                                       .settings = settings, .ranks = true);
    if (status == MIXT_OK)
        status = mixt_run_train(run, NULL);
    if (status != MIXT_OK)
        printf("rank %d: %s\n", rank, mixt_error_text());
    mixt_run_close(run);
    return status != MIXT_OK;
}
