/* Checkpoints that several processes write: the bytes are those of one that writes alone, damage in anyone's part
 * shows, and what is not complete is not there. */
#include "../support/temp_folder.h"

#include "base/status.h"
#include "store/checkpoint.h"
#include "store/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <cmocka.h>

enum { ELEMENTS = 40, TENSORS = 4, WRITERS = 3, MOST = 16 };
static const int64_t counts[TENSORS] = {23, 0, 16, 1}; // one has no elements

static float values[ELEMENTS];
static mixt__file_tensor tensors[TENSORS];
static const mixt__checkpoint_file file = {.name = "config.yaml", .data = "model: mlp\n", .bytes = 11};
static mixt__checkpoint_content content;

static int setup(void **state)
{
    static const char *const names[TENSORS] = {"master/a", "master/empty", "moment1/a", "state/b"};
    int64_t at = 0;
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = (float)(i * i) - 3.25f;
    for (int i = 0; i < TENSORS; at += counts[i++])
        tensors[i] = (mixt__file_tensor){
            .name = names[i], .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {counts[i]}, .data = values + at};
    content = (mixt__checkpoint_content){.tensors = tensors,
                                         .count = TENSORS,
                                         .scalars = json_pack("{s:i}", "step", 7),
                                         .files = &file,
                                         .file_count = 1};
    return temp_folder_setup(state);
}

static int teardown(void **state)
{
    json_decref((json_t *)(uintptr_t)content.scalars);
    return temp_folder_teardown(state);
}

/** What writer number `writer` has: elements from one cut to the next, of all tensors together. */
static int64_t pieces_of(const int *cuts, int writer, mixt__checkpoint_piece *pieces)
{
    int64_t count = 0, at = 0;
    for (int i = 0; i < TENSORS; at += counts[i++]) {
        int64_t begin = cuts[writer] > at ? cuts[writer] - at : 0;
        int64_t end = cuts[writer + 1] - at < counts[i] ? cuts[writer + 1] - at : counts[i];
        if (end > begin)
            pieces[count++] = (mixt__checkpoint_piece){
                .tensor = i, .begin = begin * 4, .bytes = (end - begin) * 4, .data = values + at + begin};
    }
    return count;
}

static void assert_same_file(const char *a, const char *b, const char *name)
{
    mixt__file_map x, y;
    char path[600];
    snprintf(path, sizeof path, "%s/%s", a, name);
    assert_int_equal(mixt__file_map_open(path, &x), MIXT_OK);
    snprintf(path, sizeof path, "%s/%s", b, name);
    assert_int_equal(mixt__file_map_open(path, &y), MIXT_OK);
    assert_int_equal(x.bytes, y.bytes);
    assert_memory_equal(x.data, y.data, x.bytes);
    mixt__file_map_close(&x);
    mixt__file_map_close(&y);
}

/** By so many processes at once, each with a pipe for its sums. @return sums of all in `sums` */
static int64_t write_at_once(const mixt__checkpoint_draft *draft, const int *cuts, mixt__checkpoint_sum *sums)
{
    mixt__checkpoint_piece pieces[MOST];
    int64_t used = 0;
    int pipes[WRITERS][2];
    for (int w = 0; w < WRITERS; w++) {
        assert_int_equal(pipe(pipes[w]), 0);
        if (fork() == 0) {
            int64_t count = pieces_of(cuts, w, pieces);
            bool good = mixt__checkpoint_add(draft, &content, pieces, count, sums) == MIXT_OK &&
                        write(pipes[w][1], sums, (size_t)count * sizeof *sums) == count * (int64_t)sizeof *sums;
            _exit(!good);
        }
    }
    for (int w = WRITERS - 1; w >= 0; w--) { // in another order than that of the file
        int64_t count = pieces_of(cuts, w, pieces), bytes = count * (int64_t)sizeof *sums;
        int status;
        assert_int_equal(read(pipes[w][0], sums + used, (size_t)bytes), bytes);
        wait(&status);
        assert_int_equal(status, 0);
        close(pipes[w][0]);
        close(pipes[w][1]);
        used += count;
    }
    return used;
}

static void test_same_bytes(void **state)
{
    (void)state;
    static const int cuts[][WRITERS + 1] = {{0, 10, 23, 40}, {0, 23, 39, 40}, {0, 5, 30, 40}, {0, 0, 40, 40}};
    static const bool cut[] = {true, false, true, false};
    const char *alone = temp_path("alone"), *parts = temp_path("parts");
    assert_int_equal(mixt__checkpoint_write(alone, &content), MIXT_OK);
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        mixt__checkpoint_draft draft;
        mixt__checkpoint_sum sums[MOST];
        mixt__checkpoint *c;
        json_t *files = json_object();
        assert_int_equal(mixt__checkpoint_begin(parts, &content, &draft), MIXT_OK);
        int64_t count = write_at_once(&draft, cuts[i], sums);
        assert_int_equal(mixt__checkpoint_add_files(&draft, &content, files), MIXT_OK);
        assert_int_equal(mixt__checkpoint_finish(&draft, &content, files, sums, count), MIXT_OK);
        assert_same_file(alone, parts, "state.safetensors");
        assert_same_file(alone, parts, "config.yaml");
        if (!cut[i])
            assert_same_file(alone, parts, "manifest.json");
        assert_int_equal(mixt__checkpoint_open(parts, &c), MIXT_OK);
        mixt__checkpoint_close(c);
        json_decref(files);
    }
}

/** How many of those who read a share each refuse it. */
static int refusals(const char *folder)
{
    mixt__checkpoint *c;
    int refused = 0, good = 0;
    for (int share = 0; share < WRITERS; share++) {
        if (mixt__checkpoint_open_share(folder, share, WRITERS, &c) != MIXT_OK) {
            refused++;
            continue;
        }
        good += mixt__checkpoint_check(c) == MIXT_OK;
        mixt__checkpoint_close(c);
    }
    assert_int_equal(good, refused ? 0 : WRITERS); // all of it is looked at then
    return refused;
}

/** Each byte of the tensors in turn. */
static void test_damage_in_a_part(void **state)
{
    (void)state;
    static const int cuts[] = {0, 5, 30, 40};
    const char *folder = temp_path("damaged");
    char path[600];
    mixt__checkpoint_draft draft;
    mixt__checkpoint_sum sums[MOST];
    mixt__checkpoint *c;
    json_t *files = json_object();
    assert_int_equal(mixt__checkpoint_begin(folder, &content, &draft), MIXT_OK);
    int64_t count = write_at_once(&draft, cuts, sums);
    assert_int_equal(mixt__checkpoint_finish(&draft, &content, files, sums, count), MIXT_OK);
    snprintf(path, sizeof path, "%s/state.safetensors", folder);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    for (int i = 0; i < ELEMENTS * 4; i++) {
        fseek(f, (long)draft.data + i, SEEK_SET);
        int right = fgetc(f);
        for (int turn = 0; turn < 2; turn++) {
            fseek(f, (long)draft.data + i, SEEK_SET);
            fputc(turn ? right : right ^ (1 << i % 8), f);
            fflush(f);
            assert_int_equal(refusals(folder), turn ? 0 : 1); // everything is read, and once
            assert_int_equal(mixt__checkpoint_open(folder, &c), turn ? MIXT_OK : MIXT_ERROR_FORMAT);
            if (turn)
                mixt__checkpoint_close(c);
            else
                assert_non_null(strstr(mixt_error_text(), "the checksum of tensor '"));
        }
    }
    fclose(f);
    json_decref(files);
}

/** A part that nobody wrote, or that two did: not there, and nothing is left. The one before stays. */
static void test_incomplete(void **state)
{
    (void)state;
    static const int cuts[] = {0, 10, 23, 40};
    const char *folder = temp_path("incomplete");
    mixt__checkpoint_draft draft;
    mixt__checkpoint_sum sums[MOST];
    mixt__checkpoint *c;
    json_t *files = json_object();
    assert_int_equal(mixt__checkpoint_write(folder, &content), MIXT_OK);
    for (int missing = 0; missing < WRITERS; missing++) {
        mixt__checkpoint_piece pieces[MOST];
        int64_t used = 0;
        assert_int_equal(mixt__checkpoint_begin(folder, &content, &draft), MIXT_OK);
        for (int w = 0; w < WRITERS; w++) {
            int64_t count = pieces_of(cuts, w == missing ? (w + 1) % WRITERS : w, pieces);
            assert_int_equal(mixt__checkpoint_add(&draft, &content, pieces, count, sums + used), MIXT_OK);
            used += count;
        }
        assert_int_equal(access(draft.temporary, F_OK), 0);
        assert_int_equal(mixt__checkpoint_finish(&draft, &content, files, sums, used), MIXT_ERROR_STATE);
        assert_non_null(strstr(mixt_error_text(), "was not written once and whole"));
        assert_int_not_equal(access(draft.temporary, F_OK), 0);
        assert_int_equal(mixt__checkpoint_open(folder, &c), MIXT_OK);
        mixt__checkpoint_close(c);
    }
    json_decref(files);
}

/** A full disk while a part is written; a file that this process does not see. */
static void test_failing_part(void **state)
{
    (void)state;
    static const int cuts[] = {0, 10, 23, 40};
    mixt__checkpoint_draft draft;
    mixt__checkpoint_sum sums[MOST];
    mixt__checkpoint_piece pieces[MOST];
    assert_int_equal(mixt__checkpoint_begin(temp_path("failing"), &content, &draft), MIXT_OK);
    int64_t count = pieces_of(cuts, 2, pieces);
    assert_int_equal(count, 2);
    for (int write = 1; write <= 2; write++) {
        mixt__file_fail_write(write);
        assert_int_equal(mixt__checkpoint_add(&draft, &content, pieces, count, sums), MIXT_ERROR_FILE);
        assert_non_null(strstr(mixt_error_text(), "No space left"));
    }
    mixt__file_fail_write(0);
    mixt__checkpoint_discard(&draft);
    assert_int_not_equal(access(draft.temporary, F_OK), 0);
    assert_int_equal(mixt__checkpoint_add(&draft, &content, pieces, count, sums), MIXT_ERROR_FILE);
    assert_non_null(strstr(mixt_error_text(), "state.safetensors: cannot be opened"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_damage_in_a_part),
        cmocka_unit_test(test_incomplete),
        cmocka_unit_test(test_failing_part),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
