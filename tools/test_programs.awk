# The command words of shell scripts, against those in `allowed` and functions. It reads as much of bash as tests use:
# quotes, $(...), `...`, ${...}, $((...)), <(...), arrays, [[ ]], case, here-documents. Not what is in them or in eval.
# `kind` is a stack of what encloses a place: T script, Q "...", S (...) that holds commands, B ${...}, A $((...)),
# L array, C [[ ]].

function push(what) { kind[++depth] = what; patterns[depth] = 0; count[depth] = 0; ready[depth] = expect; expect = 0 }
function pop() { expect = 0; if (depth > 1) depth-- }
function is_command_place() { return index("TS", kind[depth]) }

function see(word, line,    plain) {
    if (skip) { skip = 0; return }
    if (!expect || !is_command_place()) {
        if (word == "in" && patterns[depth] == 1) patterns[depth] = 2
        return
    }
    if (word ~ /^[A-Za-z_][A-Za-z0-9_]*(\[[^]]*\])?\+?=/) return
    if (wrapper && (word ~ /^[-0-9$]/ || word ~ /=/)) {
        if (wrapper == "command" && word ~ /^-[vV]/) { expect = wrapper = 0 }
        return
    }
    wrapper = 0
    if (word in opening) return
    if (word == "case") { patterns[depth] = 1; nested[depth]++; expect = 0; return }
    if (word == "esac") { nested[depth]--; patterns[depth] = 0; expect = 0; return }
    expect = 0
    if (word in closing) return
    if (word in wrappers) { wrapper = word; expect = 1 }
    if (word == "[[") { push("C"); return }
    if (word ~ /[^A-Za-z0-9_.:\[+-]/ || word == "") return       # a path, or what is only known when it runs
    if (word in known || word in own) return
    printf "%s:%d: calls %s, which tools/setup.sh does not install\n", file, line, word
    bad = 1
}

function end_word() { if (in_word) { see(word, line); in_word = 0; word = "" } }
function add(c) { in_word = 1; word = word c }

function check(    i, n, c, d, two, body, j) {
    depth = 0; expect = 1; line = 1; in_word = 0; word = ""; skip = 0; wrapper = 0; waiting = 0
    push("T"); expect = 1; nested[1] = 0
    n = length(text)
    for (i = 1; i <= n; i++) {
        c = substr(text, i, 1); two = substr(text, i, 2); d = kind[depth]
        if (c == "\n") line++
        if (c == "\\") { if (substr(text, i + 1, 1) == "\n") line++; else add("\\"); i++; continue }
        if (c == "$" || (c == "`")) {
            if (substr(text, i, 3) == "$((") { add("$"); keep(); push("A"); i += 2; count[depth] = 2; continue }
            if (two == "$(") { add("$"); keep(); push("S"); nested[depth] = 0; expect = 1; i++; continue }
            if (two == "${") { add("$"); keep(); push("B"); i++; continue }
            if (two == "$'" && d != "Q") {
                add("$")
                for (i += 2; i <= n && substr(text, i, 1) != "'"; i++) if (substr(text, i, 1) == "\\") i++
                continue
            }
            if (c == "`") { # as opaque text: no test nests anything in it
                add("$")
                continue
            }
            add("$"); continue
        }
        if (c == "\"") {
            if (d == "Q") { pop(); restore() } else { add("\""); keep(); push("Q") }
            continue
        }
        if (d == "Q") continue
        if (c == "'") {
            add("\"")
            for (i++; i <= n && substr(text, i, 1) != "'"; i++) if (substr(text, i, 1) == "\n") line++
            continue
        }
        if (d == "B") { if (c == "}") { pop(); restore() } continue }
        if (d == "A") {
            if (c == "(") count[depth]++
            if (c == ")" && --count[depth] == 0) { pop(); restore() }
            continue
        }
        if (c == "#" && !in_word) { while (i < n && substr(text, i + 1, 1) != "\n") i++; continue }
        if (d == "C") { if (two == "]]") { i++; pop(); expect = 0 } continue }
        if (d == "L") { if (c == ")") { pop(); restore() } continue }
        if (patterns[depth] >= 2) { # patterns of a case, up to their parenthesis
            if (substr(text, i, 4) == "esac" && !in_word && substr(text, i + 4, 1) !~ /[A-Za-z]/) {
                i += 3; nested[depth]--; patterns[depth] = 0; expect = 0; continue
            }
            if (c == ")") { patterns[depth] = 0; expect = 1; in_word = 0; word = "" }
            else if (c ~ /[ \t\n|(]/) { in_word = 0; word = "" }
            else in_word = 1
            continue
        }
        if (two == "<<" && substr(text, i, 3) != "<<<") {
            end_word(); i += 2
            if (substr(text, i, 1) == "-") i++
            while (substr(text, i, 1) == " ") i++
            body = ""
            while (i <= n && substr(text, i, 1) !~ /[ \t\n;|&)>]/) body = body substr(text, i++, 1)
            gsub(/['"\\]/, "", body)
            until[++waiting] = body; i--
            continue
        }
        if (two == "<(" || two == ">(") { add("$"); keep(); push("S"); nested[depth] = 0; expect = 1; i++; continue }
        if (c == "<" || c == ">") {
            if (in_word && word ~ /^[0-9]+$/) { in_word = 0; word = "" } else end_word()
            while (substr(text, i + 1, 1) ~ /[<>&|]/) i++
            while (substr(text, i + 1, 1) == " ") i++
            if (substr(text, i + 1, 1) == "(") continue
            skip = 1
            continue
        }
        if (c == "(") {
            if (in_word && word ~ /=$/) { keep(); push("L"); continue }
            if (in_word && substr(text, i + 1, 1) == ")") { i++; in_word = 0; word = ""; expect = 1; continue }
            if (two == "((") { keep(); push("A"); i++; count[depth] = 2; continue }
            end_word(); keep(); push("S"); nested[depth] = 0; expect = 1
            continue
        }
        if (c == ")") { end_word(); pop(); restore(); continue }
        if (c == "&" && substr(text, i + 1, 1) == ">") { end_word(); continue }
        if (c ~ /[ \t]/) { end_word(); continue }
        if (c ~ /[;&|\n]/) {
            end_word(); skip = 0; wrapper = 0; expect = 1
            if (two == ";;") { i++; if (nested[depth] > 0) patterns[depth] = 3 }
            if (patterns[depth] == 2 || patterns[depth] == 1) expect = 0
            here = i
            if (c == "\n") for (j = 1; j <= waiting; j++) pass(j)
            if (c == "\n") { i = position > i ? position : i; waiting = 0; position = 0 }
            continue
        }
        add(c)
    }
    end_word()
}

# What was being read when something was entered: a word goes on behind "$(...)".
function keep() { held_word[depth] = word; held_in[depth] = in_word; held_expect[depth] = expect; held_skip[depth] = skip
                  held_wrapper[depth] = wrapper; word = ""; in_word = 0; skip = 0; wrapper = 0; place = depth }
function restore() { word = held_word[depth]; in_word = held_in[depth]; expect = held_expect[depth]; skip = held_skip[depth]
                     wrapper = held_wrapper[depth] }

BEGIN {
    split("if then else elif do while until ! time { exec", a, " "); for (i in a) opening[a[i]]
    split("fi done } for select function", a, " "); for (i in a) closing[a[i]]
    split("command nice timeout env xargs stdbuf nohup setsid taskset", a, " "); for (i in a) wrappers[a[i]]
    split(allowed " " shared, a, " "); for (i in a) known[a[i]]
}

# Goes past the body of a here-document that begins behind this line.
function pass(j,    end, row) {
    if (!position) position = here
    while (position < length(text)) {
        end = index(substr(text, position + 1), "\n")
        if (!end) end = length(text) - position
        row = substr(text, position + 1, end)
        sub(/\n$/, "", row); sub(/^\t+/, "", row)
        position += end; line++
        if (row == until[j]) return
    }
}

function start() { # functions of the script, and programs that it asks for
    delete own
    rest = text
    while (match(rest, /(^|[\n;{ \t])[A-Za-z_][A-Za-z0-9_]*\(\)/)) {
        name = substr(rest, RSTART, RLENGTH - 2); sub(/^[\n;{ \t]/, "", name)
        own[name]; rest = substr(rest, RSTART + RLENGTH)
    }
    rest = text
    while (match(rest, /(command -v|(^|[\n;]) *need) [A-Za-z0-9_.+-]+/)) {
        name = substr(rest, RSTART, RLENGTH); sub(/.* /, "", name)
        own[name]; rest = substr(rest, RSTART + RLENGTH)
    }
}

FNR == 1 { if (file) { start(); check() } file = FILENAME; text = "" }
{ text = text $0 "\n" }
END { if (file) { start(); check() } exit bad }
