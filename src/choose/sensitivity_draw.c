/* The heat map of an analysis as a picture: a row a layer, a column a format and mode, colour and number the score. */
#include "choose/sensitivity.h"

#include "draw/canvas.h"
#include "store/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_WIDTH = 74, CELL_HEIGHT = 20, TOP = 64, LEFT_LEAST = 110, LETTER = 7, RIGHT = 150, BOTTOM = 40 };

static void text(mixt__canvas *c, double x, double y, const char *words, mixt__anchor anchor, bool bold)
{
    c->text(c, words, (mixt__label){.x = x, .y = y, .size = 12, .anchor = anchor, .colour = "#222222", .bold = bold});
}

/** From red over yellow to green; every step can be told apart in grey too. */
static const char *colour_of(double score)
{
    static const char *const steps[] = {"#b2182b", "#d6604d", "#f4a582", "#fddbc7", "#fff7bc",
                                        "#e6f5d0", "#c7e9c0", "#a1d99b", "#8fd18a", "#7fc97f"};
    int step = (int)(10 * score);
    return isfinite(score) ? steps[step < 0 ? 0 : step > 9 ? 9 : step] : "#cccccc";
}

static void box(mixt__canvas *c, double x, double y, double score)
{
    const double xs[] = {x, x + CELL_WIDTH - 2, x + CELL_WIDTH - 2, x};
    const double ys[] = {y, y, y + CELL_HEIGHT - 2, y + CELL_HEIGHT - 2};
    c->area(c, xs, ys, 4, (mixt__stroke){.colour = colour_of(score), .width = 1, .opacity = 1});
}

static int left_of(const mixt_sensitivity *s)
{
    int left = LEFT_LEAST;
    for (int64_t i = 0; i < s->layers.count; i++) {
        int own = 16 + LETTER * (int)strlen(s->layers.layers[i].name);
        left = own > left ? own : left;
    }
    return left;
}

static void draw_heads(mixt__canvas *c, const mixt_sensitivity *s, double left)
{
    for (int i = 0; i < s->info.format_count * MIXT_SENSITIVITY_MODES; i++) {
        int mode = i / s->info.format_count;
        double x = left + CELL_WIDTH * (i + 0.5);
        const char *format = mixt_dtype_name(s->info.formats[i % s->info.format_count]);
        text(c, x, TOP - 22, mixt_sensitivity_mode_name((mixt_sensitivity_mode)mode), MIXT__ANCHOR_MIDDLE, false);
        text(c, x, TOP - 8, format, MIXT__ANCHOR_MIDDLE, true);
    }
    text(c, left + CELL_WIDTH * s->info.format_count * MIXT_SENSITIVITY_MODES + 10, TOP - 8, "recommended",
         MIXT__ANCHOR_START, true);
}

static void draw_layer(mixt__canvas *c, const mixt_sensitivity *s, int64_t layer, double left)
{
    double y = TOP + (double)layer * CELL_HEIGHT;
    const mixt_sensitivity_layer *shown = &s->layers.layers[layer].shown;
    text(c, left - 8, y + 14, shown->name, MIXT__ANCHOR_END, false);
    for (int i = 0; i < s->info.format_count * MIXT_SENSITIVITY_MODES; i++) {
        char number[32];
        const mixt_sensitivity_row *row =
            mixt_sensitivity_find(s, shown->name, s->info.formats[i % s->info.format_count],
                                  (mixt_sensitivity_mode)(i / s->info.format_count));
        if (!row)
            continue;
        box(c, left + CELL_WIDTH * i, y, row->score);
        snprintf(number, sizeof number, "%.3f%s", row->score, row->measured ? "" : " est.");
        text(c, left + CELL_WIDTH * (i + 0.5), y + 14, number, MIXT__ANCHOR_MIDDLE, false);
    }
    text(c, left + CELL_WIDTH * s->info.format_count * MIXT_SENSITIVITY_MODES + 10, y + 14, shown->recommend,
         MIXT__ANCHOR_START, false);
}

static mixt_status make_file(const mixt_sensitivity *s, const char *path, void **file, size_t *bytes)
{
    int left = left_of(s), width = left + CELL_WIDTH * s->info.format_count * MIXT_SENSITIVITY_MODES + RIGHT;
    int height = TOP + CELL_HEIGHT * (int)s->layers.count + BOTTOM;
    mixt__canvas *c =
        mixt__path_has_extension(path, ".png") ? mixt__canvas_png(width, height) : mixt__canvas_svg(width, height);
    if (!c)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %s", path);
    text(c, 12, 22, "Sensitivity of the layers: score, 1 as FP32, 0 destroyed", MIXT__ANCHOR_START, true);
    draw_heads(c, s, left);
    for (int64_t i = 0; i < s->layers.count; i++)
        draw_layer(c, s, i, left);
    text(c, 12, height - 14, "lowered: this layer alone in the format. kept: this layer alone in FP32. est.: estimated",
         MIXT__ANCHOR_START, false);
    return c->finish(c, file, bytes);
}

mixt_status mixt_sensitivity_draw(const mixt_sensitivity *s, const char *path, bool overwrite)
{
    mixt__file_writer writer;
    void *file = NULL;
    size_t bytes = 0;
    MIXT_TRY(mixt__need_open(s, "sensitivity"));
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(mixt__file_writer_open(&writer, path, overwrite));
    mixt_status status = make_file(s, path, &file, &bytes);
    if (status == MIXT_OK)
        status = mixt__file_writer_append(&writer, file, bytes);
    if (status == MIXT_OK)
        status = mixt__file_writer_commit(&writer);
    else
        mixt__file_writer_abandon(&writer);
    free(file);
    return status;
}
