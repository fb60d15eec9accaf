/* Profiles of machines: YAML files, those of profiles/ built in. A profile is read strictly: every key is known, every
 * figure is there, in range, and has its source. */
#include "machine/machine.h"

#include "base/env.h"
#include "base/files.h"
#include "base/words.h"
#include "policy/inside.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 1 << 18, PATH_SIZE = 4096 };

/** The files of profiles/, in the order of their names. */
static const struct {
    const char *name, *text;
} built_in[] = {
#include "profiles.inc"
};
enum { BUILT_IN = sizeof built_in / sizeof built_in[0] };

static const struct {
    const char *name;
    mixt_dtype first, last; // FP8 is one word for both kinds
} formats[] = {
    {"fp32", MIXT_DTYPE_FP32, MIXT_DTYPE_FP32},        {"tf32", MIXT_DTYPE_TF32, MIXT_DTYPE_TF32},
    {"fp16", MIXT_DTYPE_FP16, MIXT_DTYPE_FP16},        {"bf16", MIXT_DTYPE_BF16, MIXT_DTYPE_BF16},
    {"fp8", MIXT_DTYPE_FP8_E4M3, MIXT_DTYPE_FP8_E5M2},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };
#define FORMAT_NAMES "fp32|tf32|fp16|bf16|fp8"
#define MATRIX_WORK "products|attention|convolution|recurrent"
#define ALL_WORK MATRIX_WORK "|norms|pointwise|loss|other|optimizer" // in the order of mixt_work

typedef struct reader {
    mixt_machine *machine;
    mixt__yaml yaml;
} reader;

/* ---- pieces of a document ---- */

static mixt_status need(const reader *r, const yaml_node_t *map, const char *name, const yaml_node_t **node)
{
    *node = mixt__yaml_find(&r->yaml, map, name);
    return *node ? MIXT_OK : mixt__yaml_bad(&r->yaml, map, "%s is missing", name);
}

static mixt_status read_number(const reader *r, const yaml_node_t *node, const char *what, double least, double most,
                               double *number)
{
    const char *text = mixt__yaml_text(node);
    char *end;
    *number = mixt__read_double(text, &end);
    if (!*text || *end || !(*number >= least && *number <= most))
        return mixt__yaml_bad(&r->yaml, node, "%s must be a number from %g to %g", what, least, most);
    return MIXT_OK;
}

static mixt_status read_text(reader *r, const yaml_node_t *node, const char *what, const char **text)
{
    if (node->type != YAML_SCALAR_NODE || !*mixt__yaml_text(node) ||
        strlen(mixt__yaml_text(node)) != node->data.scalar.length)
        return mixt__yaml_bad(&r->yaml, node, "%s must be a text", what);
    *text = mixt__arena_strdup(&r->machine->arena, mixt__yaml_text(node));
    return *text ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for profile %s", r->yaml.name);
}

/** The number of a key that must be there. */
static mixt_status number_of(const reader *r, const yaml_node_t *map, const char *name, double least, double most,
                             double *number)
{
    const yaml_node_t *node;
    MIXT_TRY(need(r, map, name, &node));
    return read_number(r, node, name, least, most, number);
}

/* ---- the figures ---- */

static mixt_status read_flops(reader *r, const yaml_node_t *root)
{
    const yaml_node_t *map, *node;
    MIXT_TRY(need(r, root, "flops", &map));
    MIXT_TRY(mixt__yaml_check_map(&r->yaml, map, "flops", FORMAT_NAMES));
    MIXT_TRY(need(r, map, "fp32", &node)); // every machine has these
    for (int f = 0; f < FORMATS; f++) {
        double rate = 0;
        if ((node = mixt__yaml_find(&r->yaml, map, formats[f].name)))
            MIXT_TRY(read_number(r, node, "operations per second", 1e6, 1e18, &rate));
        r->machine->info.flops[formats[f].first] = r->machine->info.flops[formats[f].last] = rate;
    }
    return MIXT_OK;
}

/** Shares of one limit by kind of work: one number for all of `known`, or a map that has each. */
static mixt_status read_shares(const reader *r, const yaml_node_t *node, const char *known,
                               double shares[MIXT_WORK_COUNT])
{
    double one = 0;
    bool map = node->type == YAML_MAPPING_NODE;
    if (map)
        MIXT_TRY(mixt__yaml_check_map(&r->yaml, node, "the shares", known));
    else
        MIXT_TRY(read_number(r, node, "a share", 1e-6, 1, &one));
    for (int w = 0; w < MIXT_WORK_COUNT; w++) {
        char name[32];
        if (mixt__choice_find(known, mixt__choice_name(ALL_WORK, w, name, sizeof name)) < 0)
            continue;
        shares[w] = one;
        if (map)
            MIXT_TRY(number_of(r, node, name, 1e-6, 1, &shares[w]));
    }
    return MIXT_OK;
}

static mixt_status read_reach(reader *r, const yaml_node_t *root)
{
    const yaml_node_t *map, *node;
    mixt_machine_info *info = &r->machine->info;
    MIXT_TRY(need(r, root, "reach", &map));
    MIXT_TRY(mixt__yaml_check_map(&r->yaml, map, "reach", FORMAT_NAMES));
    for (int f = 0; f < FORMATS; f++) {
        mixt_dtype first = formats[f].first, last = formats[f].last;
        if (!(info->flops[first] > 0))
            continue;
        MIXT_TRY(need(r, map, formats[f].name, &node));
        MIXT_TRY(read_shares(r, node, MATRIX_WORK, info->reach[first]));
        memcpy(info->reach[last], info->reach[first], sizeof info->reach[last]);
    }
    MIXT_TRY(need(r, root, "reach_bytes", &node));
    return read_shares(r, node, ALL_WORK, info->reach_bytes);
}

/** Everything that is one number. */
static mixt_status read_figures(reader *r, const yaml_node_t *root)
{
    mixt_machine_info *info = &r->machine->info;
    double cores, memory, reserved, capability = 0;
    const yaml_node_t *price = mixt__yaml_find(&r->yaml, root, "price");
    const yaml_node_t *link = mixt__yaml_find(&r->yaml, root, "link");
    MIXT_TRY(number_of(r, root, "cores", 1, 1e5, &cores));
    MIXT_TRY(number_of(r, root, "memory", 1048576, 1e15, &memory));
    MIXT_TRY(number_of(r, root, "reserved", 0, memory, &reserved));
    MIXT_TRY(number_of(r, root, "bandwidth", 1e6, 1e15, &info->bytes_s));
    MIXT_TRY(number_of(r, root, "launch", 0, 1, &info->launch));
    info->price = info->link = NAN;
    if (link)
        MIXT_TRY(read_number(r, link, "link", 1e3, 1e15, &info->link));
    if (price)
        MIXT_TRY(read_number(r, price, "price", 0, 1e6, &info->price));
    if (!strcmp(info->kind, "gpu"))
        MIXT_TRY(number_of(r, root, "capability", 3, 99, &capability));
    else if (mixt__yaml_find(&r->yaml, root, "capability"))
        return mixt__yaml_bad(&r->yaml, mixt__yaml_find(&r->yaml, root, "capability"),
                              "capability is of a gpu, this is a cpu");
    info->capability = (int)lround(10 * capability);
    info->cores = (int)cores;
    info->memory = (size_t)memory;
    info->reserved = (size_t)reserved;
    return MIXT_OK;
}

/** A figure without a source is a rumour. */
static mixt_status read_sources(reader *r, const yaml_node_t *root)
{
    static const char figures[] =
        "capability|cores|memory|reserved|bandwidth|link|flops|launch|reach|reach_bytes|price";
    const yaml_node_t *map;
    mixt_machine *m = r->machine;
    char name[32];
    MIXT_TRY(need(r, root, "sources", &map));
    MIXT_TRY(mixt__yaml_check_map(&r->yaml, map, "sources", figures));
    for (int i = 0; *mixt__choice_name(figures, i, name, sizeof name); i++) {
        const yaml_node_t *figure = mixt__yaml_find(&r->yaml, root, name),
                          *source = mixt__yaml_find(&r->yaml, map, name);
        if (figure && !source)
            return mixt__yaml_bad(&r->yaml, figure, "%s has no source: add it to sources", name);
        if (!figure && source)
            return mixt__yaml_bad(&r->yaml, source, "the source of %s, which the profile does not have", name);
        if (!figure)
            continue;
        MIXT_TRY(read_text(r, source, "a source", &m->sources[m->source_count].text));
        m->sources[m->source_count].figure = mixt__arena_strdup(&m->arena, name);
        if (!m->sources[m->source_count++].figure)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for profile %s", r->yaml.name);
    }
    return MIXT_OK;
}

static mixt_status read_profile(reader *r)
{
    static const char known[] =
        "version|name|title|kind|capability|cores|memory|reserved|bandwidth|link|flops|launch|reach|"
        "reach_bytes|price|sources";
    const yaml_node_t *root = mixt__yaml_node(&r->yaml, 1), *node;
    mixt_machine_info *info = &r->machine->info;
    MIXT_TRY(mixt__yaml_check_map(&r->yaml, root, "a profile", known));
    MIXT_TRY(need(r, root, "version", &node));
    if (strcmp(mixt__yaml_text(node), "1"))
        return mixt__yaml_bad(&r->yaml, node, "version must be 1: this version of mixt supports no other");
    MIXT_TRY(need(r, root, "name", &node));
    MIXT_TRY(read_text(r, node, "name", &info->name));
    MIXT_TRY(need(r, root, "title", &node));
    MIXT_TRY(read_text(r, node, "title", &info->title));
    MIXT_TRY(need(r, root, "kind", &node));
    if (mixt__choice_find("gpu|cpu", mixt__yaml_text(node)) < 0)
        return mixt__yaml_bad(&r->yaml, node, "kind must be gpu or cpu");
    MIXT_TRY(read_text(r, node, "kind", &info->kind));
    MIXT_TRY(read_figures(r, root));
    MIXT_TRY(read_flops(r, root));
    MIXT_TRY(read_reach(r, root));
    return read_sources(r, root);
}

/* ---- opening ---- */

static mixt_status parse(mixt_machine *machine, const char *text, size_t size, const char *name)
{
    reader r = {.machine = machine};
    MIXT_TRY(mixt__yaml_open(&r.yaml, text, size, name, "a profile of a machine needs name, kind, memory, …"));
    mixt_status status = read_profile(&r);
    mixt__yaml_close(&r.yaml);
    return status;
}

mixt_status mixt__machine_parse(const char *text, size_t size, const char *name, mixt_machine **machine)
{
    *machine = mixt__alloc(sizeof **machine);
    if (!*machine)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for profile %s", name);
    mixt__handle_add(&(*machine)->handle, *machine, "machine", NULL);
    mixt_status status = parse(*machine, text, size, name);
    if (status != MIXT_OK) {
        mixt_machine_free(*machine);
        *machine = NULL;
    }
    return status;
}

static mixt_status open_file(const char *path, mixt_machine **machine)
{
    FILE *file = mixt__file_open_stream(path);
    if (!file)
        return mixt__fail(MIXT_ERROR_FILE, "%s: %s", path, strerror(errno));
    char *text = mixt__alloc_uninit(FILE_MAX + 1);
    size_t size = text ? fread(text, 1, FILE_MAX + 1, file) : 0;
    bool bad = ferror(file) != 0;
    int error = errno;
    fclose(file);
    mixt_status status = !text             ? mixt__fail(MIXT_ERROR_MEMORY, "no memory to read %s", path)
                         : bad             ? mixt__fail(MIXT_ERROR_FILE, "%s: %s", path, strerror(error))
                         : size > FILE_MAX ? mixt__fail(MIXT_ERROR_CONFIG, "%s: larger than a profile can be", path)
                                           : mixt__machine_parse(text, size, path, machine);
    mixt__free(text);
    return status;
}

static mixt_status not_known(const char *name)
{
    char list[512] = "", hint[80] = "";
    mixt__nearest nearest = {.wanted = name};
    for (int i = 0; i < BUILT_IN; i++) {
        size_t used = strlen(list);
        mixt__nearest_offer(&nearest, built_in[i].name);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", built_in[i].name);
    }
    if (mixt__nearest_get(&nearest))
        snprintf(hint, sizeof hint, " (did you mean %s?)", mixt__nearest_get(&nearest));
    return mixt__fail(MIXT_ERROR_ARGUMENT, "unknown machine '%s'%s: give the path of a profile, or one of %s", name,
                      hint, list);
}

mixt_status mixt_machine_open(const char *name, mixt_machine **machine)
{
    char path[PATH_SIZE];
    const char *folder = mixt__env_get(MIXT_ENV_PROFILES);
    MIXT_TRY(mixt__need(machine));
    *machine = NULL;
    MIXT_TRY(mixt__need(name));
    if (strchr(name, '/') || (strlen(name) > 5 && !strcmp(name + strlen(name) - 5, ".yaml")))
        return open_file(name, machine);
    snprintf(path, sizeof path, "%s/%s.yaml", folder, name);
    FILE *own =
        *folder && *name ? mixt__file_open_stream(path) : NULL; // a user's profile wins over one that is built in
    if (own) {
        fclose(own);
        return open_file(path, machine);
    }
    for (int i = 0; i < BUILT_IN; i++)
        if (!strcmp(built_in[i].name, name)) {
            snprintf(path, sizeof path, "profiles/%s.yaml", name);
            return mixt__machine_parse(built_in[i].text, strlen(built_in[i].text), path, machine);
        }
    return not_known(name);
}

void mixt_machine_free(mixt_machine *machine)
{
    if (!machine || mixt__need_open(machine, "machine") != MIXT_OK)
        return;
    mixt__handle_remove(machine);
    mixt__arena_free(&machine->arena);
    mixt__free(machine);
}

/* ---- asking ---- */

int mixt_machine_count(void)
{
    return BUILT_IN;
}

const char *mixt_machine_name(int index)
{
    return index >= 0 && index < BUILT_IN ? built_in[index].name : NULL;
}

const mixt_machine_info *mixt_machine_describe(const mixt_machine *machine)
{
    return mixt__need_open(machine, "machine") == MIXT_OK ? &machine->info : NULL;
}

const char *mixt_machine_source(const mixt_machine *machine, const char *figure)
{
    if (mixt__need_open(machine, "machine") != MIXT_OK || mixt__need(figure) != MIXT_OK)
        return NULL;
    for (int i = 0; i < machine->source_count; i++)
        if (!strcmp(machine->sources[i].figure, figure))
            return machine->sources[i].text;
    return NULL;
}

bool mixt__machine_has(const mixt_machine *machine, mixt_dtype format)
{
    return machine->info.flops[format] > 0;
}
