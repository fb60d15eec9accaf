#!/bin/sh
# Folders are layers when linked, too: fails where an object of one folder of src/ needs a symbol that only folders define
# which tools/layers.txt does not let it use. Usage: tools/symbol_order.sh LIST [TABLE], a file of object files, one a line, whose
# paths say the folder (…/src/FOLDER/…).
set -eu
table=${2:-$(dirname "$0")/layers.txt}
list=$1
[ -s "$list" ] || { echo "$list: no objects to look at" >&2; exit 1; }

tr '\n' '\0' < "$list" | xargs -0 nm -A -g | awk -v table="$table" '
    BEGIN {
        while ((getline line < table) > 0) {
            if (line ~ /^#/) continue
            count = split(line, word, " ")
            for (i = 2; i <= count; i++) {
                sub(/\/.*/, "", word[i])
                may[word[1] " " word[i]] = 1
                if (!(word[i] in known)) { print "tools/layers.txt: " word[1] " uses " word[i] ", which is no line above it"; bad = 1 }
            }
            known[word[1]] = 1
        }
    }
    {
        path = $0; sub(/\.o:.*/, "", path); sub(/.*\/src\//, "", path); sub(/\.c$/, "", path)
        symbol = $NF; kind = $(NF - 1)
        folder = path; sub(/\/.*/, "", folder)
        if (!(folder in known)) unknown[folder] = 1
        if (kind == "U") { user[++uses] = path; needs[uses] = symbol; room_of[uses] = folder; next }
        if (kind ~ /^[wv]$/) next
        home[symbol] = path; room[symbol] = folder
        defines[symbol " " folder] = 1
    }
    END {
        for (folder in unknown) { print "src/" folder " is not in tools/layers.txt"; bad = 1 }
        for (i = 1; i <= uses; i++) {
            symbol = needs[i]; from = room_of[i]
            if (!(symbol in room) || defines[symbol " " from] || may[from " " room[symbol]]) continue
            if (seen[user[i] " " symbol]++) continue
            printf "src/%s.c needs %s of src/%s.c: tools/layers.txt does not let %s use %s\n", user[i], symbol, home[symbol], from, room[symbol]
            bad = 1
        }
        exit bad
    }'
