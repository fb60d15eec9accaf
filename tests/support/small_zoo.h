/* Every model of the zoo, small, as a run with validation and checkpoints; and what a process holds. */
#ifndef MIXT_TESTS_SMALL_ZOO_H
#define MIXT_TESTS_SMALL_ZOO_H

#include "mixt/mixt.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_SETTINGS = 24 };

static const char text_settings[] = "data.kind=text data.path=%s/words.txt data.seq=32";
static const char word_settings[] = "data.kind=text data.path=%s/words.txt data.seq=32 data.tokenizer=wordpiece "
                                    "data.vocab=%s data.mask=0.15";

static const struct {
    const char *model, *sizes, *data;
} small[] = {
    {"mlp", "net.hidden=512,512", "data.limit=512"},
    {"convnet", "net.channels=16,32", "data.limit=512"},
    {"resnet", "net.depth=20", "data.limit=128 data.crop=32 data.pad=2"},
    {"vgg", "net.depth=11 net.hidden=64", "data.limit=64 data.crop=32 data.pad=2"},
    {"c3d", "net.channels=8,16 net.hidden=32 net.norm=batch", "data.kind=moving data.frames=8 data.limit=64"},
    {"gpt", "net.layers=2 net.width=64 net.heads=2", text_settings},
    {"bert", "net.layers=2 net.width=64 net.heads=2", word_settings},
    {"bert_mlm", "net.layers=2 net.width=64 net.heads=2", word_settings},
    {"lstm", "net.layers=2 net.width=64", text_settings},
};
enum { MODELS = sizeof small / sizeof small[0] };

/** The texts that some of them read. */
static inline void write_texts(const char *folder)
{
    static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nquick\nbrown\nfox\njumps\n";
    char path[4096];
    snprintf(path, sizeof path, "%s/words.txt", folder);
    FILE *words = fopen(path, "w");
    snprintf(path, sizeof path, "%s/vocab.txt", folder);
    FILE *vocab = fopen(path, "w");
    if (!words || !vocab)
        exit(1);
    for (int i = 0; i < 3000; i++)
        fputs("the quick brown fox jumps\n", words);
    fputs(vocabulary, vocab);
    fclose(words);
    fclose(vocab);
}

/** The settings of a model's run, word by word, in `text`; `folder` holds the texts. */
static inline void settings_of(int model, const char *folder, const char *more, char text[4096],
                               const char *settings[SMALL_SETTINGS])
{
    char data[2048];
    snprintf(data, sizeof data, small[model].data, folder, folder); // NOLINT: one of the formats above
    snprintf(text, 4096,
             "model=%s %s %s precision=bf16 threads=2 train.steps=4 train.batch=8 train.eval_batch=32 "
             "train.checkpoint_every=2 out=%s/%s%s",
             small[model].model, small[model].sizes, data, folder, small[model].model, more);
    int count = 0;
    for (char *word = strtok(text, " "); word && count + 1 < SMALL_SETTINGS; word = strtok(NULL, " "))
        settings[count++] = word;
    settings[count] = NULL;
}

static inline mixt_status open_ranks(int model, const char *folder, const char *more, int64_t ranks, mixt_run **run)
{
    char text[4096];
    const char *settings[SMALL_SETTINGS];
    mixt_config *config;
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .settings = settings, .plan_ranks = ranks);
    *run = NULL;
    settings_of(model, folder, more, text, settings);
    MIXT_TRY(mixt_config_new(&config));
    mixt_status status = mixt_run_open_config(config, &options, run);
    mixt_config_free(config);
    return status;
}

static inline mixt_status open_model(int model, const char *folder, const char *more, mixt_run **run)
{
    return open_ranks(model, folder, more, 0, run);
}

/** A field of /proc/self/status in bytes. */
static inline size_t status_field(const char *name)
{
    char line[256];
    size_t kib = 0, length = strlen(name);
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, length) && line[length] == ':')
            kib = strtoull(line + length + 1, NULL, 10);
    if (file)
        fclose(file);
    return kib * 1024;
}

#endif
