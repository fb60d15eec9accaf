#!/bin/bash
# Help, man pages and completion of every command; what is typed wrongly is status 2 with a hint. Usage: help.sh MIXT
. "$(dirname "$0")/../support/script.sh"

# wrong WORDS ARGUMENT...: status 2, nothing on stdout, a message on stderr with these words
wrong() {
    local words=$1
    shift
    "$mixt" "$@" >"$work/out" 2>"$work/err"
    local status=$?
    [ $status = 2 ] || fail "mixt $*: status $status, expected 2"
    [ -s "$work/out" ] && fail "mixt $*: wrote to standard output"
    grep -qF -- "$words" "$work/err" || { fail "mixt $*: no '$words' in:"; cat "$work/err"; }
}

# says WORDS ARGUMENT...: status 0 and these words on stdout
says() {
    local words=$1
    shift
    "$mixt" "$@" >"$work/out" 2>"$work/err" || fail "mixt $*: status $?"
    [ -s "$work/err" ] && { fail "mixt $*: wrote to standard error:"; cat "$work/err"; }
    grep -qF -- "$words" "$work/out" || fail "mixt $*: no '$words' in the output"
}

wrong 'Commands'
wrong "unknown command 'inof' (did you mean info?)" inof
wrong "unknown command 'frobnicate'" frobnicate
wrong 'did you mean --version?' --verison
wrong 'did you mean eval?' test
wrong 'did you mean predict?' infer
wrong 'did you mean train?' fit
wrong 'unknown option' -x
wrong "unknown option '--jsn' (did you mean --json?)" info --jsn
wrong "unknown option '-x'" info -x
wrong "unexpected argument 'extra'" info extra
wrong '--json takes no value' info --json=1
wrong 'Try '"'mixt info --help'" info --nonsense
wrong 'did you mean config?' help cofnig
wrong 'no help on' help nonsense
wrong '--man-folder needs a value' help --man-folder
wrong '--man-folder needs a value' help --man-folder --man
wrong 'missing argument SHELL' completion
wrong 'did you mean bash?' completion bsh
wrong "unexpected argument 'zsh'" completion bash zsh

says 'mixt ' --version
says 'Commands' --help
says 'Commands' -h
says 'Commands' help
says 'train.lr' help config
says 'train.lr_groups' help config --all
says 'MIXT_ISA' help env
says 'device auto' help gpu
says '.TH' help --man
says '.SH GPU' help --man
says '.SH GPU' help --man gpu
says '.SH ENVIRONMENT' help --man env
says 'mixt\-config' help --man config

commands=$("$mixt" help | sed -n '/^Commands/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p')
[ "$(wc -w <<<"$commands")" -ge 3 ] || fail "commands found in the help: $commands"
for command in $commands; do
    says 'Usage' "$command" --help
    says 'Examples' help "$command"
    says '.SH OPTIONS' help --man "$command"
    # A screen, the examples first; --all has everything.
    "$mixt" "$command" --help >"$work/short"
    [ "$(wc -l <"$work/short")" -le 45 ] || fail "$command --help: $(wc -l <"$work/short") lines, 45 at most"
    [ "$(sed -n 3p "$work/short")" = Examples ] || fail "$command --help does not begin with examples"
    "$mixt" help "$command" | cmp -s - "$work/short" || fail "help $command is not $command --help"
    "$mixt" help "$command" --all >"$work/help"
    # The synopsis names every option that the list explains, and the other way round.
    for option in $(grep -oE -- '^  (-., )?--[a-z-]+' "$work/help" | grep -oE -- '--[a-z-]+' | grep -v -- '--help'); do
        sed -n '/^Usage/,/^$/p' "$work/help" | grep -q -- "$option" || fail "$command: $option is not in the synopsis"
        grep -qE -- "^  (-., )?$option\b" "$work/short" || fail "$command --help: $option is missing"
    done
    # Each paragraph of what it does ends with its last sentence, here and on the man page.
    ends=$(sed -n '/^Usage/,/^\(Arguments\|Options\)$/p' "$work/help" | sed '1,/^$/d; /^\(Arguments\|Options\)$/d' | awk '!NF && line !~ /[.]$/ { print line } { line = $0 }')
    [ -z "$ends" ] || fail "$command: a paragraph ends with: $ends"
    ends=$("$mixt" help --man "$command" | sed -n '/^.SH DESCRIPTION/,/^.SH [AO]/p' | grep -v '^[.]\(PP\|SH\)' | grep -v '[.]$')
    [ -z "$ends" ] || fail "$command: a paragraph of the man page ends with: ${ends: -60}"
    twice=$(grep -oE -- '^  -[a-zA-Z]\b' "$work/help" | sort | uniq -d)
    [ -z "$twice" ] || fail "$command: two options have one letter: $twice"
done

for model in gpt llama bert_mlm bert_classify; do
    says "$model" help export --all # in Hugging Face's names
done

# ---- the configuration: an overview, sections, keys ----

for page in '' env gpu config 'config integrity'; do
    # shellcheck disable=SC2086 # words they are
    lines=$("$mixt" help $page | wc -l)
    [ "$lines" -le 45 ] || fail "help $page: $lines lines, 45 at most"
done
"$mixt" help config --all >"$work/all"
keys=$(grep -oE '^  [a-z_]+(\.[a-z_0-9]+)?( |$)' "$work/all")
[ "$(wc -w <<<"$keys")" -ge 150 ] || fail "help config --all: only $(wc -w <<<"$keys") keys"
"$mixt" help config >"$work/overview"
for section in $(grep -oE '^[a-z]+\.\*$' "$work/all"); do
    grep -q "^  ${section%.*} " "$work/overview" || fail "help config: no section ${section%.*}"
    "$mixt" help config "${section%.*}" >"$work/section" || fail "help config ${section%.*}"
    cat "$work/section" >>"$work/sections"
done
for key in $keys; do # each begins with its name, then what it takes and its default
    echo "== $key" && "$mixt" help config "$key" || fail "help config $key: status $?"
done >"$work/keys"
wrongly=$(awk '$1 == "==" { if (key && !(takes && fallback)) print key; key = $2; takes = fallback = 0; getline; if ($0 != key) print key; next }
    /^  takes  / { takes = 1 } /^  default  / { fallback = 1 }' "$work/keys")
[ -z "$wrongly" ] || fail "help config explains something else for:" $wrongly
missing=$(grep -o '[a-z]*\.[a-z_0-9]*' <<<"$keys" | grep -vxFf <(sed -n 's/^  \([a-z]*\.[a-z_0-9]*\).*/\1/p' "$work/sections"))
[ -z "$missing" ] || fail "help config SECTION does not list:" $missing
mapfile -t examples < <(sed -n "s/^  example  *mixt train CONFIG \(.*\)/\1/p" "$work/keys" | tr -d "'")
sed -n 's/^  in the file  *//p' "$work/keys" | sed 's/^\([a-z]*\): {\(.*\)}$/\1.\2/' >"$work/examples.yaml"
# Each example is a value that its key takes: the first that is refused is the one that no key has.
echo 'xyzzyquux: 1' >>"$work/examples.yaml"
[ "$(wc -l <"$work/examples.yaml")" -gt ${#examples[@]} ] || fail "not each example is shown in a file too"
"$mixt" plan "$work/examples.yaml" 2>&1 | grep -q "unknown key 'xyzzyquux'" || fail "an example in a file: $("$mixt" plan "$work/examples.yaml" 2>&1)"
[ ${#examples[@]} -ge 130 ] || fail "only ${#examples[@]} keys have an example"
wrong "unknown key 'xyzzyquux'" plan "$PWD/configs/digits.yaml" "${examples[@]}" xyzzyquux=1
says 'train.lr' help config learning_rate
says 'train.lr' help train.lr
says 'default: bf16' help config policy
says 'mixt train --resume RUN' help config resume_from_checkpoint
wrong "there is no key 'frobnicate'" help config frobnicate
wrong "only 'mixt help config' takes a key" help train train.lr
for key in faults train.inject_overflow; do # only tests set them
    grep -q "^  $key" "$work/all" "$work/sections" && fail "help config lists $key"
    says "$key" help config $key
done

"$mixt" help --man-folder "$work/man" || fail "man pages: status $?"
for command in $commands; do
    [ -s "$work/man/mixt-$command.1" ] || fail "no man page of $command"
done
[ -s "$work/man/mixt.1" ] && [ -s "$work/man/mixt-config.5" ] || fail "no page of mixt or mixt-config"
if command -v man >/dev/null && command -v groff >/dev/null; then
    for page in "$work"/man/*; do
        warnings=$(LC_ALL=C.UTF-8 man --warnings -l "$page" 2>&1 >/dev/null)
        [ -z "$warnings" ] || fail "$page: $warnings"
    done
else
    echo "skipped: man and groff are not installed"
fi
"$mixt" help --man-folder "$work/none/man" 2>/dev/null
[ $? = 1 ] || fail "an impossible folder is not status 1"

for shell in bash zsh fish; do
    "$mixt" completion $shell >"$work/script" || fail "completion $shell: status $?"
    [ -s "$work/script" ] || fail "completion $shell is empty"
    if command -v $shell >/dev/null; then
        $shell -n "$work/script" || fail "$shell does not parse its completion script"
    else
        echo "skipped: $shell is not installed"
    fi
done

# What bash would offer after the words given.
offers() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _mixt 2>/dev/null
    echo " ${COMPREPLY[*]} "
}
"$mixt" completion bash >"$work/script"
source "$work/script"
[[ $(offers mixt inf) == *" info "* ]] || fail "bash does not complete commands"
[[ $(offers mixt info --j) == *" --json "* ]] || fail "bash does not complete options"
[[ $(offers mixt completion z) == *" zsh "* ]] || fail "bash does not complete arguments"
[[ $(offers mixt help conf) == *" config "* ]] || fail "bash does not complete help topics"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
