/* `mixt help config`: an overview, a section, one key, policy files, or every key. */
#include "cli/help.h"

#include "cli/term.h"
#include "cli/words.h"

#include <mixt/policy.h>

#include <string.h>

typedef struct section {
    const char *name, *about;
} section;

static const section sections[] = {
    {"model", "a model from an ONNX file: its last layer, its output, its loss"},
    {"net", "sizes of the model: width, layers, heads, classes, dropout"},
    {"data", "what to train on: path, kind, split, columns, tokens, normalisation, augmentation"},
    {"train", "the training: epochs, batch, optimizer, learning rate, loss scaling, memory, checkpoints"},
    {"watch", "alerts about losses, gradients, times and memory"},
    {"integrity", "checks for bits that flip in memory"},
    {"auto", "what precision=auto may change while it trains"},
    {"distill", "learning from a trained model"},
    {"dpo", "preferences between two answers"},
    {"lora", "adapters beside frozen weights: rank, layers, dropout"},
    {"dist", "training in several processes: ranks, sharding (ZeRO), compression"},
    {"verify", "thresholds of mixt verify"},
};

/** Values to show where neither the default nor a choice makes a good example. */
static const char *const examples[][2] = {
    {"model", "gpt"},
    {"precision", "fp16"},
    {"threads", "4"},
    {"init", "resnet50/"},
    {"init_skip", "fc.*"},
    {"init_new_head", "fc"},
    {"faults", "nan_data@120"},
    {"out", "runs/first"},
    {"model.head", "10"},
    {"model.output", "logits"},
    {"net.hidden", "[512,512]"},
    {"net.channels", "[32,64]"},
    {"net.layers", "6"},
    {"net.width", "384"},
    {"net.heads", "6"},
    {"net.vocab", "50257"},
    {"net.depth", "50"},
    {"net.classes", "10"},
    {"net.dropout", "0.1"},
    {"net.kv_heads", "2"},
    {"net.inner", "1024"},
    {"net.rope_theta", "500000"},
    {"net.rope_factor", "8"},
    {"net.rope_low", "1"},
    {"net.rope_high", "4"},
    {"net.rope_original", "8192"},
    {"net.eps", "1e-6"},
    {"net.penalty", "0.02"},
    {"data.path", "photos/"},
    {"data.labels", "price"},
    {"data.text", "review"},
    {"data.columns", "age,income,city"},
    {"data.drop", "id,name"},
    {"data.seq", "256"},
    {"data.vocab", "gpt2/"},
    {"data.vocab_size", "8000"},
    {"data.source", "en"},
    {"data.target", "de"},
    {"data.mask", "0.15"},
    {"data.test_fraction", "0.1"},
    {"data.users", "users.dat"},
    {"data.items", "movies.dat"},
    {"data.limit", "1000"},
    {"data.samples", "5000"},
    {"data.draw_seed", "7"},
    {"data.order_seed", "7"},
    {"data.buckets", "4"},
    {"data.classes", "10"},
    {"data.shape", "28x28x1"},
    {"data.crop", "224"},
    {"data.pad", "4"},
    {"data.min_area", "0.08"},
    {"data.resize", "256"},
    {"data.mean", "0.485,0.456,0.406"},
    {"data.std", "0.229,0.224,0.225"},
    {"data.rate", "16000"},
    {"data.mels", "80"},
    {"data.window", "25"},
    {"data.hop", "10"},
    {"data.seconds", "2"},
    {"data.tail", "0.5"},
    {"data.shift", "0.1"},
    {"data.noise", "0.1"},
    {"data.time_mask", "20"},
    {"data.mel_mask", "8"},
    {"data.val_files", "*_[0-4].wav"},
    {"data.test_files", "*_9.wav"},
    {"data.frames", "16"},
    {"data.threads", "2"},
    {"train.steps", "1000"},
    {"train.accumulate", "8"},
    {"train.split", "4"},
    {"train.recompute", "2G"},
    {"train.memory", "12G"},
    {"train.eval_batch", "256"},
    {"train.lr", "0.0003"},
    {"train.min_lr", "0.00003"},
    {"train.freeze", "h.0,wte*"},
    {"train.lr_groups", "h.*=0.1,head=10"},
    {"train.decay_groups", "wte=0"},
    {"train.warmup", "100"},
    {"train.label_smoothing", "0.1"},
    {"train.clip", "1"},
    {"train.clip_value", "0.5"},
    {"train.validate_every", "200"},
    {"train.log_every", "10"},
    {"train.early_stop", "3"},
    {"train.checkpoint_every", "500"},
    {"train.inject_overflow", "5"},
    {"auto.replay", "runs/first/events.jsonl"},
    {"distill.teacher", "runs/large"},
    {"distill.policy", "bf16"},
    {"dist.ranks", "4"},
    {"dist.compress", "topk:1%"},
    {"dist.compress_after", "10%"},
};

/** A value to set a key to, as an example; "" where there is none. */
static const char *example(const mixt_config_record *record, char text[64])
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
        if (!strcmp(examples[i][0], record->name))
            return examples[i][1];
    if (record->type == MIXT_CONFIG_BOOL)
        return strcmp(record->fallback, "true") ? "true" : "false";
    const char *choice = record->choices;
    size_t length = strcspn(choice, "|");
    if (strlen(record->fallback) == length && !strncmp(choice, record->fallback, length) && choice[length])
        choice += length + 1; // another than the default
    if (*record->choices) {
        snprintf(text, 64, "%.*s", (int)strcspn(choice, "|"), choice);
        return text;
    }
    return strcmp(record->fallback, "0") ? record->fallback : "";
}

static const char *fallback_text(const mixt_config_record *record)
{
    return *record->fallback ? record->fallback : record->type == MIXT_CONFIG_INTS ? "[]" : "empty";
}

/** Whether a key stands in a section; `name` "": in none. */
static bool stands_in(const mixt_config_record *record, const char *name)
{
    size_t length = strlen(name);
    return length ? !strncmp(record->name, name, length) && record->name[length] == '.' : !strchr(record->name, '.');
}

/** A key with its whole help, what it takes, and its default. */
static void print_whole(FILE *stream, const mixt_config_record *record)
{
    char text[1024], *expects = NULL;
    if (mixt_config_expects(record, &expects) != MIXT_OK)
        return;
    snprintf(text, sizeof text, "%s. Takes %s; default %s.", record->help, expects, fallback_text(record));
    mixt_free(expects);
    cli_help_definition(stream, record->name, text);
}

/** A key with the first clause of its help. */
static void print_short(FILE *stream, const mixt_config_record *record)
{
    char text[320];
    int open = 0, bytes = 0; // brackets that are open: a clause does not end inside
    for (const char *at = record->help; *at; at++, bytes++) {
        open += (*at == '(') - (*at == ')');
        if (!open && (*at == ';' || *at == ':' || !strncmp(at, ". ", 2)))
            break;
    }
    snprintf(text, sizeof text, "%.*s (default: %s)", bytes, record->help, fallback_text(record));
    cli_help_definition(stream, record->name, text);
}

static void print_section(FILE *stream, const char *name)
{
    const char *about = "the run itself";
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (!strcmp(sections[i].name, name))
            about = sections[i].about;
    fprintf(stream, "%s%s%s\n\n", name, *name ? ".*: " : "", about);
    const mixt_config_record *record;
    for (int64_t key = 0; (record = mixt_config_key(key)); key++)
        if (stands_in(record, name) && !record->test)
            print_short(stream, record);
    fprintf(stream, "\n'mixt help config KEY' explains one of them.\n");
}

/** Names that other tools have for a key, on a line of their own. */
static void print_aliases(FILE *stream, const mixt_config_record *record)
{
    char text[512] = "";
    const mixt_config_alias *alias;
    for (int64_t i = 0; (alias = mixt_config_alias_at(i)); i++) {
        size_t used = strlen(text);
        if (!strcmp(alias->key, record->name) && used + strlen(alias->name) + 3 < sizeof text)
            snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "", alias->name);
    }
    if (*text)
        cli_help_definition(stream, "known elsewhere as", text);
}

static void print_key(FILE *stream, const mixt_config_record *record)
{
    char value[64], text[512], *expects = NULL;
    const char *shown = example(record, value), *dot = strchr(record->name, '.');
    if (!strncmp(record->name, "model.", 6)) // model has a value of its own, and can be no map
        dot = NULL;
    if (mixt_config_expects(record, &expects) != MIXT_OK)
        return;
    fprintf(stream, "%s%s%s\n", cli_style_on(stream, CLI_BOLD), record->name, cli_style_off(stream));
    cli_help_paragraphs(stream, record->help);
    fputc('\n', stream);
    cli_help_definition(stream, "takes", expects);
    cli_help_definition(stream, "default", fallback_text(record));
    mixt_free(expects);
    if (*shown) {
        bool quote = strpbrk(shown, "*[]?=") != NULL;
        snprintf(text, sizeof text, "mixt train CONFIG %s%s=%s%s", quote ? "'" : "", record->name, shown,
                 quote ? "'" : "");
        cli_help_definition(stream, "example", text);
        bool plain = record->type == MIXT_CONFIG_INTS || !strpbrk(shown, "*[]?=,:%"); // else YAML wants it in quotes
        const char *mark = plain ? "" : record->type == MIXT_CONFIG_WORDS ? "" : "\"";
        snprintf(text, sizeof text, dot ? "%.*s: {%s: %s%s%s}" : "%.*s%s: %s%s%s", dot ? (int)(dot - record->name) : 0,
                 record->name, dot ? dot + 1 : record->name, mark, shown, mark);
        cli_help_definition(stream, "in the file", text);
    }
    print_aliases(stream, record);
    const mixt_config_record *under;
    for (int64_t key = 0; (under = mixt_config_key(key)); key++)
        if (!strchr(record->name, '.') && stands_in(under, record->name))
            print_short(stream, under);
}

static void print_policy(FILE *stream)
{
    char policy[CLI_POLICY_TEXT];
    cli_help_paragraphs(stream, cli_policy_text(policy));
    fprintf(stream, "\n%s", cli_policy_example);
}

/** Prints a section: "train", "train." or "train.*"; "run": the keys without one. */
static bool print_if_section(FILE *stream, const char *word)
{
    char name[64];
    const mixt_config_record *record;
    bool run = !strcmp(word, "run");
    snprintf(name, sizeof name, "%s", run ? "" : word);
    name[strlen(name) - strspn(name + strcspn(name, "."), ".*")] = 0; // as typed, "train.*"
    for (int64_t key = 0; (record = mixt_config_key(key)); key++)
        if (run || (*name && stands_in(record, name))) {
            print_section(stream, name);
            return true;
        }
    return false;
}

bool cli_help_key(FILE *stream, const char *word)
{
    const char *note = "";
    const mixt_config_record *record;
    if (!strcmp(word, "policy")) {
        print_policy(stream);
        return true;
    }
    for (int64_t key = 0; (record = mixt_config_key(key)); key++)
        if (!strcmp(record->name, word))
            break;
    if (!record && print_if_section(stream, word))
        return true;
    if (!record && (record = mixt_config_meant(word, &note)))
        fprintf(stream, "%s is here:\n\n", word);
    if (record)
        print_key(stream, record);
    if (*note)
        fprintf(stream, "\n%s.\n", note);
    return record || *note;
}

static void print_all(FILE *stream)
{
    char name[32] = "-";
    const mixt_config_record *record;
    for (int64_t key = 0; (record = mixt_config_key(key)); key++) {
        int width = strchr(record->name, '.') ? (int)strcspn(record->name, ".") : 0;
        if (strncmp(name, record->name, (size_t)width) || (int)strlen(name) != width) {
            char title[48];
            snprintf(name, sizeof name, "%.*s", width, record->name);
            snprintf(title, sizeof title, width ? "%s.*" : "%sThe run", name);
            cli_help_heading(stream, title);
        }
        if (!record->test)
            print_whole(stream, record);
    }
    cli_help_heading(stream, "Policy files");
    print_policy(stream);
}

void cli_help_config(FILE *stream, bool all)
{
    cli_help_paragraphs(stream,
                        "A configuration is a YAML file of nested maps. The same keys can be given on the command line "
                        "as key=value, and those win: 'train: {lr: 0.1}' in the file is train.lr=0.1 on the command "
                        "line. Every key has a default, so a file holds only what differs.");
    if (all) {
        print_all(stream);
        return;
    }
    cli_help_heading(stream, "Example");
    fputs("  model: convnet\n  precision: bf16\n  data: {path: photos/}\n  train: {epochs: 10, lr: 0.001, "
          "schedule: cosine}\n",
          stream);
    cli_help_heading(stream, "Sections");
    char keys[256] = "";
    const mixt_config_record *record;
    for (int64_t key = 0; (record = mixt_config_key(key)); key++)
        if (stands_in(record, "") && !record->test)
            snprintf(keys + strlen(keys), sizeof keys - strlen(keys), "%s%s",
                     *keys ? ", " : "the run itself: ", record->name);
    cli_help_definition(stream, "run", keys);
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        cli_help_definition(stream, sections[i].name, sections[i].about);
    cli_help_heading(stream, "More");
    cli_help_definition(stream, "mixt help config data", "the keys of a section");
    cli_help_definition(stream, "mixt help config train.lr", "one key: meaning, range, default, example");
    cli_help_definition(stream, "mixt help config policy", "policy files: a number format for each layer");
    cli_help_definition(stream, "mixt help config --all", "every key");
}

static const char policy_text[] =
    "Where precision names a file, it is YAML with a format for all (default) and rules for some: layer and op are "
    "globs over the names that 'mixt plan CONFIG --graph' prints, left out they match everything, and the last rule "
    "that matches decides. A rule that matches nothing is an error. Formats are fp32, tf32, fp16, bf16 and, for linear "
    "layers on a CPU, fp8; precision "
    "sets both those of the layer's ops and those of their gradients, forward and backward set them apart (both must "
    "be there; a default has them as a map, {forward: bf16, backward: fp32}).\n\n"
    "keep (fp16, bf16 or fp8_e4m3), in a rule or for all, is the format in which what the layer saves for its gradient "
    "lies in memory between the two passes: the forward pass does not change by a bit, the gradient reads rounded "
    "values, and memory falls. fp32: as it is. Only what lowers the memory of the step is kept so.\n\n"
    "The loss scaling and clipping that go with the formats may stand in the file too: %s. They mean what the keys of "
    "train.* do, and those win where they are set. version (1), made_by (a text) and evidence (any map) are kept and "
    "shown. Only default must be there.";

const char *cli_policy_text(char text[CLI_POLICY_TEXT])
{
    char names[256] = "";
    const char *name;
    for (int64_t i = 0; (name = mixt_policy_setting(i)); i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                 !i                           ? ""
                 : mixt_policy_setting(i + 1) ? ", "
                                              : " and ",
                 name);
    snprintf(text, CLI_POLICY_TEXT, policy_text, names);
    return text;
}

const char *const cli_policy_example = "  version: 1\n"
                                       "  default: bf16\n"
                                       "  clip: 1\n"
                                       "  keep: fp8_e4m3\n"
                                       "  rules:\n"
                                       "    - layer: \"h.*.attn*\"\n"
                                       "      precision: fp32\n"
                                       "    - op: layer_norm\n"
                                       "      forward: bf16\n"
                                       "      backward: fp32\n";
