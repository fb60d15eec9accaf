#line 53 "docs/c-api.md"
#include <mixt/types.h>

mixt_status check_rows(const char *path, long rows)
{
    if (rows == 0)
        return mixt_fail(MIXT_ERROR_DATA, "%s: has no rows", path); // the text of mixt_error_text()
    return MIXT_OK;
}
