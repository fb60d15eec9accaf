# What a header breaks of the conventions that other languages are bound by: see tools/interface.sh. Reads one header, or one for
# each file; prints a line for each fault.

function fault(text) { printf "%s: %s\n", header, text }

# the end of a header: what could not be told before all of it was read
function finish(    type) {
    if (header == "") return
    if (header !~ /\/mixt\.h$/ && first !~ /\?/) fault("its first words do not say which question it answers")
    for (type in options) {
        if (!(type in defaults)) fault(type " has no MIXT_DEFAULTS_" type " that begins with its size")
        if (!((type "_default") in functions)) fault(type " has no function " type "_default")
    }
    for (type in texts)
        if (!((type "_free") in functions) && !((type "s_free") in functions))
            fault(type " has a char * of the caller's, and its words do not name mixt_free")
    split("", options); split("", defaults); split("", functions); split("", texts)
}

# the words after the last of a kind of bracket, stars and brackets taken off: what a declarator declares
function name_of(text) {
    sub(/\[.*/, "", text)
    gsub(/[ *]+$/, "", text)
    sub(/^.*[ *]/, "", text)
    return text
}

function check_fields(type, body, words,    list, count, i, field) {
    count = split(body, list, ";")
    for (i = 1; i < count; i++) {
        field = list[i]
        if (field ~ /(^|[^a-z_])char [a-z_]+ *\[/) fault(type "." name_of(field) " is an array of characters: const char * and an owner")
        if (field ~ /(^|[ (,])char \*/ && field !~ /const char \*/ && words !~ /mixt_free/) texts[type] = 1
        if (field ~ /[ *]progress$/ && field !~ /mixt_progress_fn \*/) fault(type ".progress is no mixt_progress_fn")
        if (field ~ /_fn \*on_/ || field ~ /\(\*on_/) fault(type "." name_of(field) ": what hears of progress is `progress`")
    }
    if (type ~ /_options$/) {
        options[type] = 1
        if (list[1] !~ /^ *size_t struct_size$/) fault(type " does not begin with size_t struct_size")
    }
}

function check_function(text, words,    name, result, arguments) {
    name = text; sub(/ *\(.*/, "", name); result = name
    name = name_of(name)
    sub(/ ?\**[a-z_0-9]+$/, "", result)
    functions[name] = 1
    arguments = text; sub(/^[^(]*\(/, "", arguments)
    if (text ~ /MIXT_API (char|mixt_[a-z_0-9]+) \*[a-z]/ && !(name in lent))
        fault(name " returns what it made: status returned, object out")
    if (name ~ /_(new|open|load|parse|read)(_with)?$/ && text !~ /MIXT_API mixt_[a-z_]+ /)
        fault(name " makes something and returns no status")
    if (arguments ~ /(^|[ (,])char \*[a-z]/ && arguments !~ /const char \*[a-z_]*$/) {
        gsub(/const char \*/, "", arguments)
        if (arguments ~ /(^|[ (,])char \*[a-z]/) fault(name " writes to a buffer of the caller's: char ** and mixt_free")
    }
    if (arguments ~ /char [a-z_]+\[/) fault(name " writes to a buffer of the caller's: char ** and mixt_free")
    gsub(/const char \*\*/, "", arguments)
    if (arguments ~ /char \*\*/ && words !~ /mixt_free/) fault(name " gives a text, and its words do not name mixt_free")
}

# one declaration with the comments before and in it
function check(text, words,    type, body) {
    gsub(/[ \t]+/, " ", text)
    sub(/^ /, "", text)
    if (text ~ /(^|[^A-Z_])FILE \*/) fault("FILE * in: " substr(text, 1, 60))
    if (text ~ /^typedef struct mixt_[a-z_0-9]+ \{/) {
        type = text; sub(/^.*\} */, "", type)
        body = text; sub(/^[^{]*\{/, "", body); sub(/\}[^}]*$/, "", body)
        check_fields(type, body, words)
        if (type ~ /_event$/ && type != "mixt_event") fault(type ": what takes long tells of mixt_progress")
    } else if (text ~ /^MIXT_API /) {
        check_function(text, words)
    }
}

BEGIN { lent["mixt_run_trainer"] = 1 } # the run's own

FNR == 1 {
    finish()
    header = FILENAME
    first = $0
    code = ""; words = ""; comment = 0; macro = 0; depth = 0
}
FNR == 2 { first = first " " $0 }

# macros: only the defaults count
macro || (!comment && /^#/) {
    line = $0
    if (match(line, /^#define MIXT_DEFAULTS_[a-z_0-9]+/)) {
        defining = substr(line, 23, RLENGTH - 22)
    }
    if (defining != "" && line ~ ("\\.struct_size = sizeof\\(" defining "\\)")) defaults[defining] = 1
    macro = line ~ /\\$/
    if (!macro) defining = ""
    next
}
{
    line = $0
    while (line != "") {
        if (comment) {
            end = index(line, "*/")
            words = words " " (end ? substr(line, 1, end - 1) : line)
            if (!end) break
            line = substr(line, end + 2)
            comment = 0
        }
        begin = index(line, "/*")
        part = begin ? substr(line, 1, begin - 1) : line
        line = begin ? substr(line, begin + 2) : ""
        comment = begin > 0
        for (i = 1; i <= length(part); i++) {
            c = substr(part, i, 1)
            if (c == "{" && code !~ /extern "C" *$/) depth++
            if (c == "}" && depth > 0) depth--
            else if (c == "}" || (c == "{" && depth == 0)) { code = ""; continue }
            if (c == ";" && depth == 0) { check(code, words); code = ""; words = "" }
            else code = code c
        }
        code = code " "
    }
}
END { finish() }
