/* Ten kinds of faults, each in random nets, layers and updates: how many get the right diagnosis.
 *
 * Usage: slow_faults [TRIALS [FIRST_SEED [KIND]]]. Prints a table; fails below 95%. */
#include "../support/fault_trial.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    int trials = argc > 1 ? atoi(argv[1]) : 10, right_of[MIXT_FAULT_COUNT] = {0}, all = 0, right = 0;
    temp_folder_make();
    uint64_t first = argc > 2 ? (uint64_t)atoi(argv[2]) : 1;
    for (int k = 0; k < MIXT_FAULT_COUNT; k++)
        for (int i = 0; i < trials; i++) {
            if (argc > 3 && strcmp(argv[3], mixt__fault_name((mixt__fault_kind)k)))
                continue;
            trial t = trial_draw((mixt__fault_kind)k, first + (uint64_t)i);
            trial_run(&t);
            trial_print(&t);
            fflush(stdout);
            right_of[k] += trial_right(&t);
            right += trial_right(&t);
            all++;
        }
    printf("\n%-16s %s\n", "kind", "right");
    for (int k = 0; k < MIXT_FAULT_COUNT; k++)
        printf("%-16s %d of %d\n", mixt__fault_name((mixt__fault_kind)k), right_of[k], trials);
    printf("%-16s %d of %d\n", "all", right, all);
    temp_folder_remove();
    return right * 100 >= all * 95 ? 0 : 1;
}
