#line 513 "docs/c-api.md"
#include <mixt/program.h>
#include <stdio.h>

int main(void)
{
    if (mixt_env_check() != MIXT_OK) { // a variable with a value that the library would pass over
        fprintf(stderr, "%s\n", mixt_error_text());
        return 2;
    }
    for (int i = 0; i < mixt_env_count(); i++)
        printf("%s: %s\n", mixt_env_at(i)->name, mixt_env_at(i)->help);
    return 0;
}
