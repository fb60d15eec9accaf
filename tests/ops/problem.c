/* Problem lines: an op's name and key=value pairs. */
#include "oracle/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool problem_parse(problem *p, const char *line)
{
    memset(p, 0, sizeof *p);
    snprintf(p->text, sizeof p->text, "%s", line);
    p->text[strcspn(p->text, "#\r\n")] = '\0';
    snprintf(p->buffer, sizeof p->buffer, "%s", p->text);
    char *rest = p->buffer, *word;
    while ((word = strtok_r(rest, " \t", &rest))) {
        if (!p->op) {
            p->op = word;
            continue;
        }
        char *equals = strchr(word, '=');
        if (!equals || p->count == MAX_KEYS)
            return false;
        *equals = '\0';
        if (!strcmp(word, "device")) {
            p->device = equals + 1;
            continue;
        }
        p->keys[p->count] = word;
        p->values[p->count++] = equals + 1;
    }
    return true;
}

const char *problem_text(test_case *c, const char *key, const char *otherwise)
{
    problem *p = c->problem;
    for (int i = 0; i < p->count; i++)
        if (!strcmp(p->keys[i], key)) {
            p->used[i] = true;
            return p->values[i];
        }
    return otherwise;
}

bool problem_has(test_case *c, const char *key)
{
    return problem_text(c, key, NULL) != NULL;
}

int64_t problem_int(test_case *c, const char *key, int64_t otherwise)
{
    const char *text = problem_text(c, key, NULL);
    return text ? strtoll(text, NULL, 0) : otherwise;
}

double problem_real(test_case *c, const char *key, double otherwise)
{
    const char *text = problem_text(c, key, NULL);
    return text ? strtod(text, NULL) : otherwise;
}

mixt__shape problem_shape(test_case *c, const char *key)
{
    const char *text = problem_text(c, key, NULL);
    mixt__shape shape = {0};
    if (!text) {
        c->error = "a shape is missing";
        return shape;
    }
    if (!strcmp(text, "scalar"))
        return shape;
    for (char *end; shape.rank < MIXT_MAX_RANK; text = end + 1) {
        shape.dims[shape.rank++] = strtoll(text, &end, 10);
        if (*end != 'x')
            break;
    }
    return shape;
}
