#!/bin/bash
# What a user can get wrong in commands other than a first train: each case ends with the right status and a message that
# names it, and changes no file.
# Usage: bad_commands.sh MIXT
. "$(dirname "$0")/../support/bad_input.sh"

sed 's/limit: 256/limit: 128/' tiny.yaml >fewer.yaml
npy cut.npy 400 '\0\0\200\77'
head -c 3000 /dev/urandom >noise.csv
carried_run
writing_run
for case in noweights cutweights shortweights noise badconfig othersize notensor folderweights; do cp -r run $case; done
rm noweights/model.safetensors
truncate -s 2000 cutweights/model.safetensors
truncate -s 5 shortweights/model.safetensors
cp noise.csv noise/model.safetensors
echo 'net: [' >badconfig/config.yaml
sed -i 's/hidden: .*/hidden: [17]/' othersize/config.yaml
sed -i 's/hidden: .*/hidden: [16, 10]/' notensor/config.yaml
rm folderweights/model.safetensors && mkdir folderweights/model.safetensors

refused <<'CASES'
length of no translation      | eval run --length-penalty 2                           | 1 | --length-penalty: run does not translate
beam of no texts            | eval run --beams 4                                   | 1 | --beams: run does not transcribe or translate
batch above the memory      | bench mlp --precision fp32 --batch 16777216         | 1 | training needs 24
batch that would fit        | bench mlp --precision fp32 --batch 16777216         | 1 | GiB free: a batch of about
positions above the model   | bench gpt --precision fp32 --batch 1 --seq 2000     | 1 | the model has only 1024 positions
benchmark unknown           | bench mpl --precision fp32                          | 2 | did you mean mlp?
benchmark without precision | bench mlp                                           | 2 | missing option --precision
benchmark of no GPU         | bench mlp --precision fp32 --device cuda            | 1 | device 'cuda': the CUDA backend is not here:
benchmark of no device      | bench mlp --precision fp32 --device gpu             | 2 | --device: expected one of auto, cpu, cuda, cuda:N
eval on no GPU              | eval run --device cuda                              | 1 | device 'cuda': the CUDA backend is not here:
eval on no device           | eval run --device 0                                 | 2 | --device: expected one of auto, cpu, cuda, cuda:N
eval of nothing             | eval none                                           | 1 | none: no such folder: expected a run directory
eval of a file              | eval tiny.yaml                                      | 1 | tiny.yaml: no such folder
eval of another folder      | eval folder                                         | 1 | folder: holds no config.yaml
eval with bad configuration | eval badconfig                                      | 1 | badconfig/config.yaml:1:
eval without weights        | eval noweights                                      | 1 | noweights: has no final weights
eval of cut weights         | eval cutweights                                     | 1 | are not within the
eval of five bytes          | eval shortweights                                   | 1 | too short
eval of noise               | eval noise                                          | 1 | not a safetensors file
eval of another shape       | eval othersize                                      | 1 | tensor 'fc.0.weight' is fp32 [16, 784], the model needs a float tensor (17, 784)
eval without a tensor       | eval notensor                                       | 1 | tensor 'fc.2.weight' is missing
eval with a folder          | eval folderweights                                  | 1 | is not a regular file
eval of no such part        | eval run --split tset                               | 2 | did you mean test?
convert to an existing file | convert good.npy labels.npy --dtype fp16            | 1 | labels.npy: exists already: choose another name, or replace it with --overwrite
convert of nothing          | convert none.npy x.npy --dtype fp16                 | 1 | none.npy: cannot be opened
convert of a cut file       | convert cut.npy x.npy --dtype fp16                  | 1 | but the file has 400 there
convert into no folder      | convert good.npy none/x.npy --dtype fp16            | 1 | none/x.npy: cannot be created
convert to no format        | convert good.npy x.npy --dtype fp17                 | 2 | did you mean fp16?
convert to bf16 in NPY      | convert good.npy x.npy --dtype bf16                 | 1 | .npy has no format for bf16
sequence of a perceptron    | bench mlp -p fp32 -t 5                              | 2 | --seq 5: mlp has no sequence
seed of what is not drawn   | convert good.npy x.npy -d fp16 --seed 5             | 2 | --seed 5 has no effect with rounding to nearest: add --stochastic, or
vocabulary of bytes         | tokenize words.txt -v folder -t bytes               | 2 | --vocab folder: bytes are tokens without a vocabulary
verify past the last seed   | verify tiny.yaml precision=bf16 --seeds 2 seed=9223372036854775807 | 2 | seed: 9223372036854775807 is too large for 2 seeds
verify with no weights      | verify tiny.yaml precision=bf16 init=none --steps 2   | 1 | none: cannot be opened
search without a tolerance  | search tiny.yaml --lose much --out p.yaml           | 2 | --lose 'much': expected a share of the loss above 0 and at most 1, as in
search with 0 tolerance     | search tiny.yaml --lose 0% --out p.yaml             | 2 | --lose '0%'
search with all tolerance   | search tiny.yaml --lose 101% --out p.yaml           | 2 | --lose '101%'
search without an end       | search tiny.yaml --budget 10d --out p.yaml          | 2 | --budget '10d': expected a time above 0, as in 90s, 10m or 2h
search for something        | search tiny.yaml --for speed --out p.yaml           | 2 | time, memory
search with --write         | search tiny.yaml --write p.yaml                       | 2 | unknown option '--write' (did you mean --out?)
search to nowhere           | search tiny.yaml                                      | 2 | --out
search to an empty name     | search tiny.yaml --out=                             | 2 | --out needs the name of a file
search into the config      | search tiny.yaml --out tiny.yaml                    | 2 | is the configuration itself
search over a data file     | search tiny.yaml --out good.csv                     | 1 | good.csv: exists already and is not of a search: choose another file,
search into no folder       | search tiny.yaml --out none/p.yaml                  | 1 | none/p.yaml
search over a folder        | search tiny.yaml --out good                         | 1 | good: is a directory
search in no format         | search tiny.yaml --formats fp17 --out p.yaml        | 1 | formats: 'fp17' is not a format
search of one trial         | search tiny.yaml --trials 1 --out p.yaml            | 2 | --trials
search of no file           | search none.yaml --out p.yaml                       | 1 | none.yaml: cannot be opened
search with no weights      | search tiny.yaml init=none --out p.yaml             | 1 | none: cannot be opened
adopt with nothing          | adopt                                                 | 2 | CONFIG
adopt with no file          | adopt none.yaml                                       | 1 | none.yaml: cannot be opened
adopt to a place            | adopt tiny.yaml --to heaven                           | 2 | baseline, formats, mixed, tuned, validated
adopt backwards             | adopt tiny.yaml --from tuned --to mixed               | 2 | the second stage comes before the first
adopt from the middle       | adopt tiny.yaml --from tuned                          | 1 | start with baseline
adopt without a margin      | adopt tiny.yaml --margin 0                            | 2 | --margin '0': expected a share above 0 and at most 1, as in 0.5% or 0.005
adopt without an end        | adopt tiny.yaml --budget 10d                          | 2 | --budget '10d': expected a time above 0, as in 90s, 10m or 2h
adopt by one seed           | adopt tiny.yaml --seeds 1                             | 2 | --seeds
adopt into a directory      | adopt tiny.yaml out=x                                 | 2 | out: adopt writes to runs/adopt-NAME
compare into a directory    | compare tiny.yaml tiny.yaml out=x                     | 2 | out: compare writes to runs/compare-NAME
verify into a directory     | verify tiny.yaml precision=bf16 out=x                 | 2 | out: verify keeps no runs
search into a directory     | search tiny.yaml --out p.yaml out=x                   | 2 | out: search keeps no runs
adopt under a path          | adopt tiny.yaml --name ../x                           | 2 | --name '../x': expected 1 to
adopt back and forth        | adopt tiny.yaml --undo --to mixed                     | 2 | --undo trains nothing
adopt back with history     | adopt tiny.yaml --undo --history                      | 2 | give either --undo or --history
adopt back from nothing     | adopt tiny.yaml --undo                                | 1 | nothing was started under the name tiny
adopt without history       | adopt tiny.yaml --history                             | 1 | nothing was started under the name tiny
adopt without the data      | adopt tiny.yaml data.kind=csv data.path=none.csv      | 1 | none.csv
compare with nothing        | compare tiny.yaml                                     | 2 | B
compare with no file        | compare tiny.yaml none.yaml                           | 1 | none.yaml: cannot be opened
compare by one seed         | compare tiny.yaml tiny.yaml --seeds 1                 | 2 | --seeds
compare without a margin    | compare tiny.yaml tiny.yaml --margin 0                | 2 | --margin '0': expected a share above 0 and at most 1, as in 0.5% or 0.005
compare within words        | compare tiny.yaml tiny.yaml --margin little           | 2 | --margin 'little'
compare by another metric   | compare tiny.yaml tiny.yaml --metric f1               | 2 | loss, accuracy, train_loss, best_loss
compare without an end      | compare tiny.yaml tiny.yaml --budget 10d              | 2 | --budget '10d': expected a time above 0, as in 90s, 10m or 2h
compare for a free machine  | compare tiny.yaml tiny.yaml --cost 0/h                | 2 | --cost '0/h'
compare under a path        | compare tiny.yaml tiny.yaml --name ../x               | 2 | --name '../x': expected 1 to
compare under no name       | compare tiny.yaml tiny.yaml --name=                   | 2 | --name ''
compare other models        | compare tiny.yaml gpt.yaml                            | 1 | model is mlp in A and gpt in B: only runs of the same model
compare other data          | compare tiny.yaml fewer.yaml                          | 1 | data.limit is 256 in A and 128 in B
compare past the last seed  | compare tiny.yaml tiny.yaml seed=9223372036854775807  | 1 | is too large for the seeds of pairs
compare without the data    | compare tiny.yaml tiny.yaml data.kind=csv data.path=none.csv | 1 | none.csv
compare a run with a file   | compare tiny.yaml good                                | 2 | good is a folder and tiny.yaml is not
compare what are no runs    | compare good good                                     | 1 | good: holds no config.yaml
compare runs with seeds     | compare good good --seeds 9                           | 2 | finished runs are only read
table of nothing            | table                                                 | 2 | SOURCE
table of no file            | table none                                            | 1 | none: cannot be opened
table of a named no file    | table X=none                                          | 1 | none: cannot be opened
table of a configuration    | table tiny.yaml                                       | 1 | tiny.yaml: is not a file of 'mixt verify --out': a table takes those,
table of what is no run     | table good                                            | 1 | good: holds no config.yaml
table in no format          | table good --format html                              | 2 | text, markdown, csv, latex
table in two ways           | table good --json --format csv                        | 2 | --json has its own format: leave out --format and --out
table into no folder        | table carried --out none/t.tex                        | 1 | none/t.tex
table over a file           | table carried --out tiny.yaml                         | 1 | tiny.yaml
table over nothing          | table good --overwrite                                | 2 | --overwrite is for --out
verify to no target         | verify tiny.yaml precision=bf16 --target soon         | 2 | --target 'soon': expected a loss, as in 0.35, or an accuracy
verify past all accuracy    | verify tiny.yaml precision=bf16 --target 101%         | 2 | --target '101%'
verify to a loss of 0       | verify tiny.yaml precision=bf16 --target 0            | 2 | --target '0'
verify for a free machine   | verify tiny.yaml precision=bf16 --cost 0/h            | 2 | --cost '0/h'
verify into the config      | verify tiny.yaml precision=bf16 --out tiny.yaml       | 1 | is the configuration itself: choose another file for --out
verify into one file twice  | verify tiny.yaml precision=bf16 --out v --plot v      | 1 | --plot and --out name the same file
sensitivity of no file      | sensitivity none.yaml                               | 1 | none.yaml: cannot be opened
sensitivity in no format    | sensitivity tiny.yaml --formats fp17                | 1 | cannot be trained in 'fp17'
sensitivity in INT8         | sensitivity tiny.yaml --formats bf16,int8           | 1 | cannot be trained in 'int8': expected fp8, fp32, tf32, fp16, bf16
sensitivity without trials  | sensitivity tiny.yaml --trials 0                    | 2 | --trials
sensitivity into no folder  | sensitivity tiny.yaml --out none/x.svg              | 1 | none/x.svg
advise: no such machine     | advise tiny.yaml --machine a1000                      | 1 | unknown machine 'a1000' (did you mean a100?)
advise: no such profile     | advise tiny.yaml --machine none.yaml                  | 1 | none.yaml: No such file
advise: not a profile       | advise tiny.yaml --machine tiny.yaml                  | 1 | tiny.yaml:1:1: unknown key of a profile
advise: memory in words     | advise tiny.yaml --machine t4 --memory much           | 2 | --memory 'much': expected bytes
advise: memory of another   | advise tiny.yaml --machine t4 --memory 12X            | 2 | --memory '12X': expected bytes
advise: negative memory     | advise tiny.yaml --machine t4 --memory -1G            | 2 | --memory '-1G': expected bytes
advise: loses too much      | advise tiny.yaml --machine t4 --lose 101%             | 2 | --lose '101%': expected a share
advise: price of a day      | advise tiny.yaml --machine t4 --cost 3/d              | 2 | --cost '3/d': expected the price of an hour
advise: no configuration    | advise --machine t4                                   | 2 | CONFIG
advise: an hour's trial      | advise tiny.yaml --trial 3600                         | 2 | --trial
advise: into a folder       | advise tiny.yaml --machine t4 --out .               | 1 | .: is a folder
demo with no weights        | demo init=none                                      | 1 | none: cannot be opened
eval without the data       | eval carried                                        | 1 | carried: its data is no longer at
eval of another set         | eval run data.kind=csv data.path=good.csv           | 1 | good.csv: 4 channels, but the data it must match (digits) has 1
eval of a set not there     | eval carried data.path=none.csv                     | 1 | none.csv: No such file
eval with other training    | eval run train.lr=1                                 | 1 | only keys data.* can be set here; the others are the run's
export of damaged facts     | export facts                                        | 1 | facts/inputs.json:2:0:
export onto the run         | export run --out run                                | 1 | run: is the run itself, whose weights would be replaced
two prompts                 | generate writer --prompt-ids 3 --prompt a            | 1 | give either --prompt or --prompt-ids
ids that are no numbers     | generate writer --prompt-ids 3,x                     | 1 | --prompt-ids '3,x': expected token ids
an id past the vocabulary   | generate writer --prompt-ids 999999                  | 1 | token 0 of the prompt is 999999: the model knows 0 to
text of a perceptron        | generate run                                        | 1 | run: its model is mlp: only language models (gpt, llama, lstm, gru, rnn) generate text
resume with another rate    | train --resume run train.lr=0.5                     | 1 | train.lr: 0.001 -> 0.5
resume told what to allow   | train --resume run train.lr=0.5                     | 1 | --allow train.lr would allow the settings that it names
resume allowing another key | train --resume run train.lr=0.5 --allow train.clip  | 1 | train.lr: 0.001 -> 0.5
resume allowing no key      | train --resume run train.lr=0.5 --allow train.lrr   | 1 | 'train.lrr' cannot change at a resume: precision, the learning rate and
resume with another batch   | train --resume run train.batch=16 --allow train.batch | 1 | 'train.batch' cannot change at a resume: precision, the learning rate and
allowance of a new run      | train tiny.yaml out=x --allow train.lr              | 2 | --allow is for --resume
plot of nothing             | plot none --out x.svg                               | 1 | cannot read none: No such file
plot of no metric           | plot run --metric lss --out x.svg                   | 1 | run has no metric lss: expected one of step, epoch, loss
plot of another kind        | plot run --out x.gif                                | 2 | --out x.gif: a chart ends in .svg or .png
plot onto what is there     | plot run --out words.txt                            | 2 | --out words.txt: a chart ends in .svg or .png
plot of another file        | plot good.csv --out x.svg                           | 1 | good.csv has no complete row yet; line 1:
plot without a file         | plot run                                            | 2 | missing option --out FILE
demo of no model            | demo model=xxx                                      | 1 | unknown model 'xxx'
demo in a precision         | demo precision=fp16                                 | 1 | precision: the demo trains in FP32 and in the format of --precision
demo into a directory       | demo out=x                                          | 1 | out: the demo writes to runs/demo-<number>; only 'mixt train'
CASES

finish
