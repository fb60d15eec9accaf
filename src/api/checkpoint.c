/* The public trainer's checkpoints: written and read by the caller's thread. */
#include "api/api.h"

#include "base/options.h"

#include "train/checkpoint.h"
#include "train/frozen_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static mixt_status check_name(const char *folder)
{
    return *folder ? MIXT_OK : mixt__fail(MIXT_ERROR_ARGUMENT, "the name of the checkpoint folder is missing");
}

/** The file of frozen parameters, under a name beside the checkpoint until that has it. */
static mixt_status add_frozen(const mixt__trainer *t, const char *folder, mixt__checkpoint_content *content,
                              mixt__checkpoint_file *one, mixt__frozen_file *file)
{
    char path[sizeof file->path];
    size_t length = strlen(folder);
    const mixt__params *params = mixt__trainer_params(t);
    if (!mixt__params_have_frozen(params))
        return MIXT_OK;
    while (length > 1 && folder[length - 1] == '/')
        length--;
    if (snprintf(path, sizeof path, "%.*s.frozen-%ld", (int)length, folder, (long)getpid()) >= (int)sizeof path)
        return mixt__fail(MIXT_ERROR_FILE, "%.60s…: the path is too long", folder);
    MIXT_TRY(mixt__frozen_file_write(params, path, file));
    *one = (mixt__checkpoint_file){
        .name = MIXT_CHECKPOINT_FROZEN, .bytes = file->bytes, .from = file->path, .sum = file->sum};
    content->files = one;
    content->file_count = 1;
    return MIXT_OK;
}

static mixt_status save(mixt__trainer *t, const char *folder)
{
    mixt__snapshot snapshot;
    MIXT_TRY(check_name(folder));
    if (!mixt__trainer_compiled(t))
        return mixt__fail(MIXT_ERROR_STATE, "nothing to save yet: compile the trainer, or run a step first");
    if (mixt__ranks_discrete(t))
        return mixt__fail(MIXT_ERROR_STATE,
                          "ranks have state of their own, which one rank cannot save: use mixt_run_ask_checkpoint");
    MIXT_TRY(mixt__trainer_allocate(t)); // before the first step: the state that it begins with
    MIXT_TRY(mixt__snapshot_open(&snapshot, t, MIXT_SNAPSHOT_WHOLE, true));
    mixt_status status = mixt__snapshot_take(&snapshot, t);
    json_t *scalars = status == MIXT_OK ? json_pack("{s:O}", "trainer", snapshot.scalars) : NULL;
    mixt__checkpoint_content content = {.tensors = snapshot.tensors, .count = snapshot.count, .scalars = scalars};
    mixt__checkpoint_file one;
    mixt__frozen_file file = {0};
    if (status == MIXT_OK)
        status = mixt__checkpoint_finite(&content, NULL, 0);
    if (status == MIXT_OK)
        status = add_frozen(t, folder, &content, &one, &file);
    if (status == MIXT_OK)
        status = scalars ? mixt__checkpoint_write(folder, &content)
                         : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a checkpoint's figures");
    if (*file.path)
        (void)unlink(file.path); // the checkpoint has it
    json_decref(scalars);
    mixt__snapshot_close(&snapshot);
    return status;
}

mixt_status mixt_trainer_checkpoint(mixt_trainer *t, const char *folder)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, folder));
    return mixt__context_note(t->context, save(t->inner, folder));
}

static mixt_status restore(mixt__trainer *t, const char *folder, bool allow_policy)
{
    static const char *const policy[] = {"precision", NULL};
    mixt__checkpoint *checkpoint;
    MIXT_TRY(check_name(folder));
    MIXT_TRY(mixt__checkpoint_open(folder, &checkpoint));
    mixt_status status = mixt__trainer_restore(t, checkpoint, allow_policy ? policy : NULL);
    mixt__checkpoint_close(checkpoint);
    return status;
}

mixt_status mixt_trainer_restore_with(mixt_trainer *t, const char *folder, const mixt_restore_options *options)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, folder));
    mixt_restore_options own = MIXT_OPTIONS(mixt_restore_options);
    MIXT_TRY(mixt__context_note(t->context, mixt__options(mixt_restore_options, &own, options)));
    return mixt__context_note(t->context, restore(t->inner, folder, own.allow_policy));
}

mixt_status mixt_trainer_restore(mixt_trainer *t, const char *folder)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, folder));
    return mixt__context_note(t->context, restore(t->inner, folder, false));
}
