#!/bin/sh
# Folders are layers: fails on an #include against the order below. Usage: tools/include_order.sh [ROOT]
# (ops.h and ops.def are the list of op records, attrs.h their attributes: what a backend's candidate table needs.)
# A header called *_inside.h is for its own folder, whoever may include that: so nobody above src/train sees what a
# trainer is made of.
# A folder and the folders in it are one layer.
# A line names a folder and what it may include beside itself and the public headers: folders, or patterns of files.
set -eu
root=${1:-$(dirname "$0")/..}
cd "$root"

layers='
base
num       base
graph     base num
ops       base num graph
model     base num graph ops
policy    base num store
passes    base num graph ops policy
backend   base num graph ops/*attr*.h ops/ops.h ops/ops.def
runtime   base num graph ops policy passes backend
train     base num graph ops model policy passes backend runtime data store dist
watch     base num
stats     base
draw      base store
steer     base num graph ops model passes backend runtime data store dist train config policy api watch
infer     base num graph ops policy passes backend runtime model
api       base num graph ops model passes backend runtime data store train infer config policy models
tasks     base num graph ops model backend runtime data store train infer config policy models api
inspect   base num graph ops model passes backend runtime data store train infer config policy models api
store     base num
dist      base num
data      base num store
config    base
models    base num graph ops model
run       base num graph ops model passes backend runtime data store dist train infer config policy models api watch steer
verify    base num graph ops model passes backend runtime data store train infer config policy models api run
page      base num config store run
choose    base num graph ops model passes backend runtime data store train infer config policy models api inspect draw run verify
prove     base num graph ops model passes backend runtime data store train infer config policy models api inspect run verify page
'

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
        if (!(layer in known)) { complain("folder src/" layer " is not in the table of tools/include_order.sh"); next }
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
