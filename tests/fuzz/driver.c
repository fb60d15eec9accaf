/* Runs a fuzz target without libFuzzer: every file it is given, then mutations of them until the time is up.
 *
 * The same seed and corpus give the same inputs in the same order, however far the time lets it come. There is no
 * coverage to steer by; an input whose message is new joins the corpus instead, because a reader's messages say how
 * deep into it an input came. A failing input is written to a file that reproduces it.
 *
 * Usage: fuzz_NAME [-t SECONDS] [-s SEED] [-d DICTIONARY] FILE|FOLDER…
 */
#include "fuzz.h"
#include "mutate.h"

#include "base/status.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { HANG_SECONDS = 2, MESSAGES_MAX = 4096, KEPT_MAX = 256 };

void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static const char *program;
static fuzz_bytes current; // the input being run
static fuzz_corpus corpus;
static uint32_t messages[MESSAGES_MAX];
static int message_count;

/** Writes the input that ends the program; with what is left of a process that may be damaged. */
static void save_current(void)
{
    char path[300];
    const char *name = strrchr(program, '/');
    snprintf(path, sizeof path, "crash-%.100s-%ld", name ? name + 1 : program, (long)getpid());
    FILE *file = fopen(path, "wb");
    if (file) {
        fwrite(current.data, 1, current.size, file);
        fclose(file);
        fprintf(stderr, "the input (%zu bytes) is in %s; again with: %s -t 0 %s\n", current.size, path, program, path);
    }
    fuzz_folder_remove();
}

/** The processor time for one input is used up: as good as a crash. */
static void on_hang(int signal_number)
{
    (void)signal_number;
    static const char text[] = "one input took more than 2 s of processor time\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(1);
    abort();
}

static void run_input(const uint8_t *data, size_t size)
{
    memcpy(current.data, data, size);
    current.size = size;
    const struct itimerval limit = {.it_value = {.tv_sec = HANG_SECONDS}}, off = {0};
    setitimer(ITIMER_VIRTUAL, &limit, NULL);
    mixt__error_set("");
    uint8_t *exact = malloc(size ? size : 1); // of its own, so that reading past the end is seen
    if (exact) {
        memcpy(exact, data, size);
        LLVMFuzzerTestOneInput(exact, size);
    }
    free(exact);
    setitimer(ITIMER_VIRTUAL, &off, NULL);
}

/** Whether the newest message was not there before; numbers and what it quotes of the input do not count. */
static bool message_is_new(void)
{
    uint32_t hash = 2166136261u;
    bool quoted = false;
    for (const char *at = mixt_error_text(); *at; at++) {
        quoted ^= *at == '\'' || *at == '"';
        if (!quoted && !isdigit((unsigned char)*at))
            hash = (hash ^ (uint8_t)*at) * 16777619u;
    }
    for (int i = 0; i < message_count; i++)
        if (messages[i] == hash)
            return false;
    if (message_count == MESSAGES_MAX)
        return false;
    messages[message_count++] = hash;
    return true;
}

static bool read_bytes(const char *path, fuzz_bytes *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    bytes->size = fread(bytes->data, 1, FUZZ_INPUT_MAX, file);
    return !fclose(file);
}

static void run_file(const char *path)
{
    static fuzz_bytes bytes;
    if (!read_bytes(path, &bytes)) {
        perror(path);
        exit(2);
    }
    run_input(bytes.data, bytes.size);
    message_is_new();
    fuzz_corpus_add(&corpus, bytes.data, bytes.size);
}

static void run_path(const char *path)
{
    struct stat info;
    if (stat(path, &info) || !S_ISDIR(info.st_mode)) {
        run_file(path);
        return;
    }
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort); // sorted: the same everywhere
    if (count < 0) {
        perror(path);
        exit(2);
    }
    for (int i = 0; i < count; i++) {
        char name[1024];
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            run_file(name);
        free(entries[i]);
    }
    free(entries);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int64_t run_mutations(double seconds, uint64_t seed)
{
    static fuzz_bytes bytes;
    int64_t count = 0;
    for (double end = now() + seconds; seconds > 0 && now() < end; count++) {
        fuzz_mutate(&corpus, &seed, &bytes);
        run_input(bytes.data, bytes.size);
        if (message_is_new() && corpus.count < KEPT_MAX)
            fuzz_corpus_add(&corpus, bytes.data, bytes.size);
    }
    return count;
}

int main(int argc, char **argv)
{
    const char *limit = getenv("MIXT_FUZZ_SECONDS");
    double seconds = limit && *limit ? strtod(limit, NULL) : 4;
    uint64_t seed = 1;
    program = argv[0];
    for (int option; (option = getopt(argc, argv, "t:s:d:")) != -1;)
        if (option == 't')
            seconds = strtod(optarg, NULL);
        else if (option == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (option != 'd' || !fuzz_corpus_dictionary(&corpus, optarg))
            return 2;
    if (optind == argc) {
        fprintf(stderr, "usage: %s [-t SECONDS] [-s SEED] [-d DICTIONARY] FILE|FOLDER...\n", program);
        return 2;
    }
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(save_current);
    signal(SIGVTALRM, on_hang);
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    for (int i = optind; i < argc; i++)
        run_path(argv[i]);
    int64_t files = corpus.count, runs = files ? run_mutations(seconds, seed ? seed : 1) : 0;
    printf("%lld files, %lld mutations in %g s, seed %llu: %d different messages\n", (long long)files, (long long)runs,
           seconds, (unsigned long long)seed, message_count);
    fuzz_corpus_free(&corpus);
    return files ? 0 : 2;
}
