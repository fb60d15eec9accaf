#!/bin/sh
# Folders are layers: fails on an #include against tools/layers.txt. Usage: tools/include_order.sh [ROOT]
# A header called *_inside.h is for its own folder, whoever may include that: so nobody above src/train sees what a
# trainer is made of.
set -eu
root=${1:-$(dirname "$0")/..}
table=$(cd "$(dirname "$0")" && pwd)/layers.txt
cd "$root"

layers=$(grep -v '^#' "$table")

find src include examples cli -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.def' 2>/dev/null | sort |
    xargs -r awk -v layers="$layers" '
    BEGIN {
        rows = split(layers, line, "\n")
        for (i = 1; i <= rows; i++) {
            words = split(line[i], word, " ")
            if (!words) continue
            known[word[1]] = 1
            for (j = 2; j <= words; j++) allowed[word[1]] = allowed[word[1]] " " word[j]
        }
    }
    function matches(path, pattern) {            # a folder, or a pattern of files
        if (pattern !~ /\//) return index(path, pattern "/") == 1
        gsub(/\./, "\\.", pattern); gsub(/\*/, "[^/]*", pattern)
        return path ~ ("^" pattern "$")
    }
    function complain(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; bad = 1 }
    /^[ \t]*#[ \t]*include[ \t]*[<"]/ {
        quoted = $0 ~ /include[ \t]*"/
        path = $0; sub(/^[^<"]*[<"]/, "", path); sub(/[>"].*$/, "", path)
        split(FILENAME, part, "/")
        if (path ~ /\.\./) { complain("\"" path "\": name headers from the root of src/, not by \"..\""); next }
        public = path ~ /^mixt\//
        if (part[1] == "include") {              # public headers stand alone: no internal, no vendor header
            if (quoted && !public) complain("public header includes \"" path "\"")
            if (!quoted && !public && path ~ /\//) complain("public header includes <" path ">")
            next
        }
        if (part[1] == "examples") { if (quoted && !public) complain("example includes \"" path "\": only <mixt/...>"); next }
        if (part[1] == "cli") {                  # the command has what every program has
            if (quoted && !public && path !~ /^cli\//) complain("the command includes \"" path "\": only <mixt/...> and cli/")
            next
        }
        if (part[1] != "src" || !quoted || public) next
        layer = part[2]
        if (!(layer in known)) { complain("folder src/" layer " is not in tools/layers.txt"); next }
        if (path ~ /_inside\.h$/ && index(path, layer "/") != 1) {
            complain("\"" path "\" is for the files of its own folder")
            next
        }
        if (path !~ /\// || index(path, layer "/") == 1) next
        split(path, target, "/")
        if (!(target[1] in known)) {             # not ours: a library, or cli/ and tests/ from inside src/
            complain("\"" path "\" is no layer of src/; library headers go in <>")
            next
        }
        count = split(allowed[layer], may, " ")
        for (i = 1; i <= count; i++) if (matches(path, may[i])) next
        complain("src/" layer " may not include \"" path "\" (allowed:" (allowed[layer] ? allowed[layer] : " nothing above itself") ")")
    }
    END { exit bad }' || exit 1
