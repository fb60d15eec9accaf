#line 282 "docs/c-api.md"
#include <mixt/profile.h>
#include <stdio.h>

mixt_status print_profile(mixt_trainer *trainer, const mixt_data *data)
{
    mixt_profile *profile;
    mixt_status status = mixt_profile_new(trainer, data, 10, &profile);
    const mixt_profile_row *row;
    for (int64_t i = 0; status == MIXT_OK && (row = mixt_profile_at(profile, i)); i++)
        printf("%-24s %-16s %8.1f us\n", row->layer, row->op, 1e6 * row->seconds);
    mixt_profile_free(profile);
    return status;
}
