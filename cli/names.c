/* Names of experiments. */
#include "cli/names.h"

#include <string.h>

bool cli_name_good(const char *name, size_t longest)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strlen(name);
    return length > 0 && length <= longest && strspn(name, letters) == length;
}

void cli_name_add_stem(char *name, size_t size, const char *path)
{
    const char *slash = strrchr(path, '/'), *begin = slash ? slash + 1 : path, *dot = strrchr(begin, '.');
    size_t length = dot && dot > begin ? (size_t)(dot - begin) : strlen(begin), used = strlen(name);
    for (size_t i = 0; i < length && i < 45 && used + 1 < size; i++) {
        char letter = begin[i];
        bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                     (letter >= '0' && letter <= '9') || letter == '_';
        name[used++] = plain ? letter : '-';
    }
    name[used] = '\0';
}
