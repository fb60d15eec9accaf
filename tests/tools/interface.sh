#!/bin/bash
# The check of the interface must itself be able to fail: a header that keeps every convention, and one for each that is broken.
set -u
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# expect pass|fail FAULT: how the check ends of the header on standard input, and what it says
expect() {
    cat >"$tree/a.h"
    if "$PWD/tools/interface.sh" "$tree" >"$tree/output" 2>&1; then result=pass; else result=fail; fi
    if [ "$result" != "$1" ] || { [ "$result" = fail ] && ! grep -qF "$2" "$tree/output"; }; then
        echo "expected $1, got $result: ${2:-all conventions kept}"
        cat "$tree/output"
        failures=$((failures + 1))
    fi
    rm "$tree/a.h"
}

good='/* How do I do it? So. */
#ifdef __cplusplus
extern "C" {
#endif
/** How. */
typedef struct mixt_a_options {
    size_t struct_size;
    const char *name;           /**< "a"; char b[2] */
    mixt_progress_fn *progress; /**< hears */
} mixt_a_options;
MIXT_API void mixt_a_options_default(mixt_a_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_a_options                                                                                   \
    .struct_size = sizeof(mixt_a_options), .name = "a"
/** What came of it. */
typedef struct mixt_a_report {
    char *text; /**< for mixt_free */
    const char *lines[4];
} mixt_a_report;
MIXT_API mixt_status mixt_a_new(const mixt_a_options *options, mixt_a **a);
/** @param text receives it, for mixt_free */
MIXT_API mixt_status mixt_a_text(const mixt_a *a, char **text);
MIXT_API const char *mixt_a_name(const mixt_a *a);
MIXT_API mixt_status mixt_a_list(const mixt_a *a, const char *const *names, const char **name);
#ifdef __cplusplus
}
#endif'
expect pass '' <<<"$good"
# broken FROM TO FAULT: what the check says where the header has TO in place of FROM
broken() { expect fail "$3" <<<"${good/"$1"/"$2"}"; }
broken 'How do I do it? So.' 'It is done so.' 'do not say which question it answers'
broken '    size_t struct_size;' '    size_t size;' 'mixt_a_options does not begin with size_t struct_size'
broken 'void mixt_a_options_default' 'void mixt_a_options_fill' 'mixt_a_options has no function mixt_a_options_default'
broken '.struct_size = sizeof(mixt_a_options), ' '' 'mixt_a_options has no MIXT_DEFAULTS_mixt_a_options'
broken 'const char *name;           /' 'char name[16]; /' 'mixt_a_options.name is an array of characters'
broken 'const char *lines[4];' 'char lines[4][80];' 'mixt_a_report.lines is an array of characters'
broken 'mixt_progress_fn *progress' 'mixt_a_heard *progress' 'mixt_a_options.progress is no mixt_progress_fn'
broken 'mixt_progress_fn *progress' 'mixt_a_fn *on_event' 'on_event: what hears of progress is `progress`'
broken '/**< for mixt_free */' '/**< a text */' 'mixt_a_report has a char *'
broken 'receives it, for mixt_free' 'receives it' 'mixt_a_text gives a text'
broken 'mixt_status mixt_a_new(const mixt_a_options *options, mixt_a **a)' 'mixt_a *mixt_a_new(const mixt_a_options *options)' \
    'mixt_a_new returns what it made'
broken 'mixt_status mixt_a_new' 'bool mixt_a_new' 'mixt_a_new makes something and returns no status'
broken 'const char *mixt_a_name' 'char *mixt_a_name' 'mixt_a_name returns what it made'
broken 'char **text);' 'char *text, size_t size);' "mixt_a_text writes to a buffer of the caller's"
broken 'char **text);' 'char text[80]);' "mixt_a_text writes to a buffer of the caller's"
broken 'const char *const *names' 'FILE *file' 'FILE * in'
broken 'mixt_a_report;' 'mixt_a_event;' 'mixt_a_event: what takes long tells of mixt_progress'
if "$PWD/tools/interface.sh" "$tree/none" >/dev/null 2>&1; then
    echo "a folder without headers passes"
    failures=$((failures + 1))
fi
exit $((failures != 0))
