/* The list of candidates that must run, a line each: op, candidate, lowest and perhaps highest instruction set. */
#include "ops/required.h"

#include "base/isa.h"

#include <stdio.h>
#include <string.h>

enum { LINES_MAX = 1024, NAME_MAX = 48 };

typedef struct line {
    char op[NAME_MAX], candidate[NAME_MAX];
    mixt__isa lowest, highest;
} line;

static line lines[LINES_MAX];
static int count;

static mixt__isa level_of(const char *name)
{
    int level = 0;
    while (level < MIXT_ISA_COUNT && strcmp(mixt__isa_name((mixt__isa)level), name))
        level++;
    return (mixt__isa)level;
}

bool required_read(const char *path)
{
    FILE *file = fopen(path, "r");
    char text[256], sets[2][NAME_MAX];
    if (!file) {
        fprintf(stderr, "ops: cannot read %s: run from the repository root\n", path);
        return false;
    }
    bool good = true;
    for (int number = 1; fgets(text, sizeof text, file); number++) {
        if (text[0] == '#' || text[0] == '\n')
            continue;
        line l;
        int words = sscanf(text, "%47s %47s %47s %47s", l.op, l.candidate, sets[0], sets[1]);
        l.lowest = words < 3 ? MIXT_ISA_COUNT : level_of(sets[0]);
        l.highest = words < 4 ? MIXT_ISA_COUNT - 1 : level_of(sets[1]);
        if (l.lowest == MIXT_ISA_COUNT || l.highest == MIXT_ISA_COUNT || count == LINES_MAX) {
            printf("FAIL %s:%d is not 'OP CANDIDATE LOWEST-SET [HIGHEST-SET]': %s", path, number, text);
            good = false;
        } else {
            lines[count++] = l;
        }
    }
    fclose(file);
    return good;
}

static const line *find(const char *op, const char *candidate)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(lines[i].op, op) && !strcmp(lines[i].candidate, candidate))
            return &lines[i];
    return NULL;
}

bool required_check(const char *op, const char *candidate, bool ran)
{
    mixt__isa here = mixt__isa_level();
    const line *l = find(op, candidate);
    if (l && ran == (l->lowest <= here && here <= l->highest))
        return true;
    printf("FAIL %s, candidate %s %s with %s: tests/ops/required.txt ", op, candidate, ran ? "ran" : "never ran",
           mixt__isa_name(here));
    if (l)
        printf("says that it runs from %s to %s; --verbose tells why not\n", mixt__isa_name(l->lowest),
               mixt__isa_name(l->highest));
    else
        printf("has no line that says with which instruction sets it runs\n");
    return false;
}
