#line 303 "docs/c-api.md"
#include <mixt/verify.h>
#include <stdio.h>

mixt_status check(const mixt_config *config)
{
    mixt_verification *v;
    mixt_status status = mixt_verify(config, &v, .seeds = 3, .steps = 200);
    const mixt_verify_line *line;
    for (int i = 0; status == MIXT_OK && (line = mixt_verification_line(v, i)); i++)
        printf("%s: %g, %s\n", line->name, line->value,
               !line->measured ? "not measured" : line->pass ? "pass" : "fail");
    mixt_verification_free(v);
    return status;
}
