/* GPUs as objects: contexts on one GPU, or on two, train at once in threads of their own, each to the bits that it has
 * alone; what a closed one had is found again; numbers of GPUs that are not there.
 *
 * Models and formats are such that every kernel whose last block adds up what all left behind runs in both at the same
 * time: with counters that two devices shared, their sums would be wrong.
 *
 * Needs a GPU: without one every test here fails, since a test that cannot run did not pass. A second GPU takes the
 * other context where there is one.
 */
#include "../support/small_zoo.h"
#include "../support/temp_folder.h"
#include "../support/trainers_at_once.h"

enum { STEPS = 60, MANY_CLASSES = 32768, ROUNDS = 3 };

static char words[512]; // path

static mixt_trainer *train_model(const job *j, mixt_model *model, int64_t batch)
{
    return mixt_trainer_new(model, .precision = j->precision, .batch = batch, .seed = j->seed);
}

/** Batch norm, sums over rows and columns, losses of short rows. */
static mixt_trainer *make_convnet(const job *j, mixt_data **data)
{
    static const int64_t channels[] = {16, 32};
    *data = mixt_data_new(j->context, "digits:", .samples = 2048, .seed = 3);
    mixt_model *model =
        mixt_zoo_model(j->context, "convnet", *data, .channels = channels, .channel_count = 2, .norm = "batch");
    return train_model(j, model, 256);
}

/** Attention, layer norm, dropout, losses of long rows. */
static mixt_trainer *make_gpt(const job *j, mixt_data **data)
{
    *data = mixt_data_new(j->context, words, .seq = 64, .seed = 3);
    mixt_model *model = mixt_zoo_model(j->context, "gpt", *data, .layers = 2, .width = 128, .heads = 2, .dropout = 0.1F,
                                       .vocab = MANY_CLASSES);
    return train_model(j, model, 8);
}

/** Recurrences, embeddings and their gradients. */
static mixt_trainer *make_lstm(const job *j, mixt_data **data)
{
    *data = mixt_data_new(j->context, words, .seq = 32, .seed = 3);
    return train_model(j, mixt_zoo_model(j->context, "lstm", *data, .layers = 2, .width = 64), 16);
}

/** Mean squared error, tables of rows. */
static mixt_trainer *make_ratings(const job *j, mixt_data **data)
{
    *data = mixt_data_new(j->context, "ratings:", .samples = 8192, .seed = 3);
    return train_model(j, mixt_zoo_model(j->context, "mf", *data, .width = 16), 4096);
}

static const job_kind convnet = {.make = make_convnet, .steps = STEPS, .evaluates = true},
                      gpt = {.make = make_gpt, .steps = STEPS}, lstm = {.make = make_lstm, .steps = STEPS},
                      ratings = {.make = make_ratings, .steps = STEPS};

static job on_gpu(const job_kind *kind, const char *device, const char *precision)
{
    return (job){.kind = kind, .device = device, .precision = precision, .seed = 5};
}

/** Alone on the first GPU, which times what is to be timed; then at once, several times. */
static void train_at_once(const job_kind *const kinds[2], const char *const formats[2], const char *second)
{
    const char *const devices[2] = {"cuda", second};
    job alone[2];
    for (int i = 0; i < 2; i++)
        alone[i] = job_alone(on_gpu(kinds[i], "cuda", formats[i]));
    for (int round = 0; round < ROUNDS; round++) {
        job at_once[2];
        for (int i = 0; i < 2; i++)
            at_once[i] = on_gpu(kinds[i], devices[i], formats[i]);
        jobs_at_once(at_once, 2);
        for (int i = 0; i < 2; i++) {
            assert_true(jobs_same(&alone[i], &at_once[i]));
            job_forget(&at_once[i]);
        }
    }
    for (int i = 0; i < 2; i++)
        job_forget(&alone[i]);
}

static void the_same_model_twice(void **state)
{
    static const job_kind *const kinds[] = {&convnet, &gpt, &lstm, &ratings};
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        train_at_once((const job_kind *const[]){kinds[i], kinds[i]}, (const char *const[]){"fp32", "bf16"}, "cuda");
        train_at_once((const job_kind *const[]){kinds[i], kinds[i]}, (const char *const[]){"bf16", "bf16"}, "cuda");
    }
}

static void different_models(void **state)
{
    (void)state;
    train_at_once((const job_kind *const[]){&convnet, &gpt}, (const char *const[]){"fp16", "tf32"}, "cuda:0");
    train_at_once((const job_kind *const[]){&lstm, &convnet}, (const char *const[]){"bf16", "fp32"}, "cuda:0");
}

/** What the other tests compare differs where something differs. */
static void another_seed_is_seen(void **state)
{
    (void)state;
    job a = job_alone(on_gpu(&convnet, "cuda", "bf16")), other = on_gpu(&convnet, "cuda", "bf16");
    other.seed++;
    job b = job_alone(other);
    assert_false(jobs_same(&a, &b));
    job_forget(&a);
    job_forget(&b);
}

/** The second GPU gives the bits of the first where both are of a kind; where there is none, opening it says so. */
static void the_second_gpu(void **state)
{
    (void)state;
    mixt_gpu_info first, second;
    if (mixt_gpu_count() < 2) {
        assert_null(mixt_open(.device = "cuda:1"));
        assert_non_null(strstr(mixt_error_text(), "device 'cuda:1': there is no GPU 1: CUDA shows 1, from 0 on"));
        print_message("one GPU: the second is not tested\n");
        return;
    }
    assert_int_equal(mixt_gpu_describe(0, &first), MIXT_OK);
    assert_int_equal(mixt_gpu_describe(1, &second), MIXT_OK);
    if (strcmp(first.name, second.name)) {
        job there = job_alone(on_gpu(&convnet, "cuda:1", "bf16"));
        assert_string_equal(there.why, "");
        job_forget(&there);
        return;
    }
    train_at_once((const job_kind *const[]){&convnet, &convnet}, (const char *const[]){"bf16", "bf16"}, "cuda:1");
    train_at_once((const job_kind *const[]){&gpt, &lstm}, (const char *const[]){"fp32", "fp16"}, "cuda:1");
}

/** Opened and closed again and again, contexts take no more memory, on the GPU or of the process. */
static void closed_devices_come_back(void **state)
{
    (void)state;
    mixt_gpu_info before, after;
    size_t resident = 0;
    for (int i = 0; i < 40; i++) {
        mixt_context *a = mixt_open(.device = "cuda"), *b = mixt_open(.device = "cuda:0");
        assert_non_null(a);
        assert_non_null(b);
        mixt_close(i % 2 ? a : b);
        mixt_close(i % 2 ? b : a);
        if (!i) {
            assert_int_equal(mixt_gpu_describe(0, &before), MIXT_OK);
            resident = status_field("VmRSS");
        }
    }
    assert_int_equal(mixt_gpu_describe(0, &after), MIXT_OK);
    assert_true(after.memory_free + (1 << 20) > before.memory_free); // somebody else may use the GPU too: tell them
    assert_true(status_field("VmRSS") < resident + (4 << 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_model_twice),     cmocka_unit_test(different_models),
        cmocka_unit_test(another_seed_is_seen),     cmocka_unit_test(the_second_gpu),
        cmocka_unit_test(closed_devices_come_back),
    };
    temp_folder_make();
    write_texts(temp_folder);
    snprintf(words, sizeof words, "text:%s/words.txt", temp_folder);
    int failed = cmocka_run_group_tests_name("devices", tests, NULL, NULL);
    remove(temp_path("words.txt"));
    remove(temp_path("vocab.txt"));
    temp_folder_remove();
    return failed;
}
