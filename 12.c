#line 343 "docs/c-api.md"
#include <mixt/machine.h>
#include <stdio.h>

void print_formats(void)
{
    mixt_format_info format[MIXT_FORMATS_MAX];
    int count = mixt_cpu_formats(format);
    for (int i = 0; i < count; i++)
        printf("%s: %s\n", format[i].name, mixt_support_name(format[i].support));
    printf("device auto is %s\n", mixt_device_auto());
}
