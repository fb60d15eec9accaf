/* What of a text may reach a terminal. */
#include "cli/shown.h"

/** Bytes of the control character that begins here, 0 when none does; line ends and tabs steer nothing. U+0080 to
 *  U+009F are some terminals' other names for escape sequences. */
static int64_t control_length(const unsigned char *text, int64_t length)
{
    if (text[0] < 0x20 || text[0] == 0x7f)
        return text[0] != '\n' && text[0] != '\t';
    return text[0] == 0xc2 && length > 1 && text[1] < 0xa0 ? 2 : 0;
}

void cli_show(FILE *stream, const char *text, int64_t length)
{
    for (int64_t i = 0; i < length;) {
        int64_t control = control_length((const unsigned char *)text + i, length - i);
        if (control)
            fputs("\xef\xbf\xbd", stream);
        else
            fputc(text[i], stream);
        i += control ? control : 1;
    }
}
