#!/bin/bash
# mixt chat and generate --system: turns through a pipe and a terminal, ends, stops, a context that is full, refusals. Models are hardly
# trained: what they say is nothing, how it ends is looked at. Usage: chat.sh MIXT
. "$(dirname "$0")/../support/script.sh"
need python3
cd "$work" || exit 1

seq 1 400 >text.txt
cat >llama.yaml <<'YAML'
model: llama
threads: 1
precision: fp32
net: {layers: 1, width: 16, heads: 2}
data: {kind: text, path: text.txt, seq: 96}
train: {steps: 1, batch: 1, lr: 0.01}
YAML
"$mixt" train llama.yaml out=run -q || fail "train"
printf '%s' '{% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}' >plain.jinja
# refused TEXT COMMAND...: must fail with status 1 and say TEXT
refused() {
    local text=$1
    shift
    "$@" >out 2>err </dev/null
    local status=$?
    [ $status = 1 ] || fail "$*: status $status"
    grep -qF -- "$text" err || { fail "$*: says nothing of '$text'"; cat err; }
}
# field NAME: of the last line of the file out
field() { tail -n 1 out | python3 -c 'import json, sys; print(json.loads(sys.stdin.read())[sys.argv[1]])' "$1"; }

# ---- turns ----
printf 'one\n\ntwo\n' | "$mixt" chat run --template plain.jinja -t 0 -n 5 --json >out 2>err || { fail "two turns"; cat err; }
[ $(wc -l <out) = 2 ] || fail "two lines are two answers, an empty one is none: $(cat out)"
[ "$(field message) $(field end) $(field tokens)" = "two length 5" ] || fail "the second answer: $(tail -n 1 out)"
# user: one, assistant: (5 bytes, or the characters that they made), user: two, assistant:
[ "$(field dropped)" = 0 ] && [ "$(field prompt_tokens)" -gt 44 ] || fail "the first turn is not in the second prompt: $(tail -n 1 out)"
printf 'one\ntwo\n' | "$mixt" chat run --template plain.jinja -t 0 -n 5 >a 2>err
printf 'one\ntwo' | "$mixt" chat run --template plain.jinja -t 0 -n 5 >b 2>err
cmp a b || fail "a last line without an end is not answered alike"
grep -q 'cut after 5 tokens' err || fail "nothing says that the answer was cut: $(cat err)"
iconv -f UTF-8 -t UTF-8 <a >/dev/null || fail "answers are not UTF-8"
printf 'one\n' | "$mixt" chat run --template plain.jinja --system 'Be brief.' -t 0 -n 3 --json >out && [ "$(field prompt_tokens)" = 39 ] ||
    fail "the system's message: $(cat out)"

# ---- a context that is full ----
for i in 1 2 3 4 5 6; do echo "question number $i"; done | "$mixt" chat run --template plain.jinja --system S -t 0 -n 8 --json >out 2>err || fail "a long conversation: $(cat err)"
[ "$(field dropped)" = 2 ] && grep -q 'oldest messages are forgotten' err || fail "nothing was dropped: $(tail -n 1 out) $(cat err)"
python3 - <<'PY' || fail "a prompt is longer than the context"
import json
rows = [json.loads(line) for line in open('out')]
assert len(rows) == 6 and all(r['prompt_tokens'] + 8 <= 96 for r in rows) and rows[0]['dropped'] == 0, rows
PY
printf 'hi\n' | "$mixt" chat run --template plain.jinja -t 0 --json >out 2>err && [ "$(field end)" = context ] || fail "the end of the context: $(cat out)"
head -c 200 /dev/zero | tr '\0' x >long
"$mixt" chat run --template plain.jinja <long >out 2>err && fail "a message longer than the context was taken"
grep -q 'this message alone makes 2.* tokens, which with room for an answer do not fit the context of 96' err || fail "too long: $(cat err)"

# ---- ends: the folder's, the template's, one's own ----
"$mixt" export run --out folder >/dev/null || fail "export"
rm folder/vocab.json folder/merges.txt
python3 - <<'PY'
import json
code = [b for b in range(256) if 33 <= b < 127 or 161 <= b < 173 or b > 173]
rest = [b for b in range(256) if b not in code]
tokens = {**{chr(b): b for b in code}, **{chr(256 + i): b for i, b in enumerate(rest)}}
added = [{'id': 256 + i, 'content': t, 'single_word': False, 'lstrip': False, 'rstrip': False, 'normalized': False, 'special': True} for i, t in enumerate(('<end>', '<turn>'))]
tokens = {**{chr(b): b for b in code}, **{chr(256 + i): b for i, b in enumerate(rest)}}
json.dump({'added_tokens': added, 'normalizer': None, 'pre_tokenizer': {'type': 'ByteLevel', 'add_prefix_space': False, 'use_regex': True}, 'post_processor': None,
           'model': {'type': 'BPE', 'vocab': tokens, 'merges': []}}, open('tokenizer.json', 'w'))
PY
sed 's/seq: 96/seq: 96, vocab: tokens/' llama.yaml >tokens.yaml
mkdir tokens && mv tokenizer.json tokens
echo '{"chat_template": "{% for m in messages %}<turn>{{ m.role }} {{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}<turn>assistant {% endif %}"}' >tokens/tokenizer_config.json
"$mixt" train tokens.yaml out=marked -q || fail "train with markers"
cmp tokens/tokenizer_config.json marked/vocab/tokenizer_config.json || fail "the template is not kept with the run"
mv tokens gone
"$mixt" export marked --out hf >/dev/null || fail "export with markers"
cmp gone/tokenizer_config.json hf/tokenizer_config.json || fail "the template is not exported with the weights"
for folder in marked hf; do
    printf 'hi\n' | "$mixt" chat $folder -t 0 -n 4 --json >out 2>err || { fail "chat $folder"; cat err; }
    [ "$(field prompt_tokens)" = 20 ] || fail "$folder: markers are not one token each: $(cat out)" # <turn>user hi<end><turn>assistant + blank
done
# What the model says first ends the answer, once generation_config.json calls it an end.
python3 - "$mixt" <<'PY' || fail "generation_config.json's end is not one"
import json, subprocess, sys
def chat():
    out = subprocess.run([sys.argv[1], 'chat', 'hf', '-t', '0', '-n', '4', '--json'], input='hi\n', capture_output=True, text=True)
    return json.loads(out.stdout)
assert chat()['end'] == 'length', chat()
prompt = ','.join(map(str, [257, *b'user hi', 256, 257, *b'assistant ']))
said = subprocess.run([sys.argv[1], 'generate', 'hf', '--prompt-ids', prompt, '-n', '1', '-t', '0', '--ids', '-q'], capture_output=True, text=True).stdout
json.dump({'eos_token_id': [300, int(said)]}, open('hf/generation_config.json', 'w'))
made = chat()
assert (made['end'], made['tokens'], made['answer']) == ('end', 0, ''), made
PY

# ---- generate: the same without a conversation ----
"$mixt" generate marked --system 'You count.' --prompt hi -t 0 -n 6 -q >a || fail "generate --system"
printf 'hi\n' | "$mixt" chat marked --system 'You count.' -t 0 -n 6 2>/dev/null >b
cmp a b || fail "generate --system and chat answer otherwise"
"$mixt" generate run --prompt 'one two' --stop 'zzz' -t 0 -n 12 -q >a && "$mixt" generate run --prompt 'one two' -t 0 -n 12 -q >b && cmp a b || fail "a stop that never comes changes the text"
"$mixt" generate run --prompt '' -t 2 -n 60 --seed 3 --json >out && python3 - "$mixt" <<'PY' || fail "generate --stop"
import json, subprocess, sys
text = json.load(open('out'))['text']
letter = next(c for c in text[10:] if c.isascii() and c.isprintable())
cut = subprocess.run([sys.argv[1], 'generate', 'run', '--prompt', '', '-t', '2', '-n', '60', '--seed', '3', '--json', '--stop', letter], capture_output=True, text=True)
made = json.loads(cut.stdout)
assert made['text'] == text[:text.index(letter)], (made['text'], text, letter)
assert made['tokens'] < 60
PY

# ---- refusals ----
refused "run: no template to talk to it by" "$mixt" chat run
refused "none.jinja" "$mixt" chat run --template none.jinja
echo '{{ raise_exception("No system, please") if messages[0].role == "system" }}{{ messages[0].content }}' >strict.jinja
printf 'hi\n' | "$mixt" chat run --template strict.jinja --system S >out 2>err
[ $? = 1 ] && grep -q 'No system, please' err || fail "the template's own refusal: $(cat err)"
printf 'a\377b\n' | "$mixt" chat run --template plain.jinja >out 2>err
[ $? = 1 ] && grep -q 'is not UTF-8' err || fail "a message that is not UTF-8: $(cat err)"
refused "variables" "$mixt" chat run --template plain.jinja --variables '[1]'
mkdir bare && cp hf/{config.json,model.safetensors} bare
refused "bare: has no tokenizer, without which there is no conversation" "$mixt" chat bare
"$mixt" chat run --template plain.jinja </dev/null >out 2>err && [ ! -s out ] || fail "no input: $(cat err)"

sed 's/model: llama/model: lstm/; s/, heads: 2//' llama.yaml >lstm.yaml
"$mixt" train lstm.yaml out=lstm -q || fail "train lstm"
# ---- a terminal: Ctrl-C ends an answer, Ctrl-D the conversation ----
python3 - "$mixt" <<'PY' || fail "a terminal"
import os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.environ['NO_COLOR'] = '1'
    os.execv(sys.argv[1], [sys.argv[1], 'chat', 'run', '--template', 'plain.jinja', '-t', '5'])
seen = b''
def until(text, start=0, again=b''):
    global seen
    begin = time.time()
    while text not in seen[start:]:
        assert time.time() - begin < 100, (text, seen)
        os.write(fd, again)
        if select.select([fd], [], [], 0.2)[0]:
            try:
                data = os.read(fd, 4096)
            except OSError:
                data = b''
            assert data, (text, seen)
            seen += data
until(b'> ')
at = len(seen)
until(b'> ', at, b'\x03')  # in front of an empty line
at = len(seen)
os.write(fd, b'hello\n')
until(b'\n> ', at)
at = len(seen)
os.write(fd, b'/new\n')
until(b'> ', at)
os.write(fd, b'\x04')
_, status = os.waitpid(pid, 0)
assert status == 0, status

pid, fd = pty.fork()
if pid == 0:  # an answer without an end: a recurrent model's context is never full
    os.environ['NO_COLOR'] = '1'
    os.execv(sys.argv[1], [sys.argv[1], 'chat', 'lstm', '--template', 'plain.jinja', '-t', '5', '-n', '1000000000'])
seen = b''
until(b'> ')
os.write(fd, b'hello\n')
at = len(seen) + 40
until(b'\n> ', at, b'\x03')
os.write(fd, b'\x04')
_, status = os.waitpid(pid, 0)
assert status == 0, status
PY
[ $failures = 0 ] || exit 1
