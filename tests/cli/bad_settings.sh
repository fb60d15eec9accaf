#!/bin/bash
# What a user can get wrong in settings, configurations and policies: each case ends with the right status and a message
# that names it, and changes no file.
# Usage: bad_settings.sh MIXT
. "$(dirname "$0")/../support/bad_input.sh"

printf 'model: mlp\ntrain: {lr: [1}\n' >syntax.yaml
printf 'model: mlp\n\ttrain: 1\n' >tab.yaml
printf 'model: mlp\nmodel: gpt\n' >twice.yaml
printf 'train:\n  learning_rate: 0.1\n' >key.yaml
printf 'train:\n  batch: many\n' >type.yaml
printf '\0\1\2' >binary.yaml
: >empty.yaml
printf 'default: bf16\nrules:\n  - layer: "fc.0\n' >policy_syntax.yaml
printf 'default: fp4\n' >policy_format.yaml
printf 'default: bf16\nrulez: []\n' >policy_key.yaml
printf 'default: bf16\nkeep: tf32\n' >policy_keep.yaml
printf 'default: bf16\ndefault: fp16\n' >policy_twice.yaml
printf 'rules: []\n' >policy_default.yaml
printf 'default: bf16\nphases:\n  - name: a\n    until: 5\n' >phases_last.yaml
printf 'default: bf16\nphases:\n  - {name: a, until: 5}\n  - {name: b, until: 3}\n  - name: c\n' >phases_order.yaml
printf 'default: bf16\nphases:\n  - {name: a, until: 5}\n  - {name: b, until: 10%%}\n  - name: c\n' >phases_share.yaml
printf 'default: bf16\nphases:\n  - name: a\n    formats: fp32\n' >phases_key.yaml
printf 'default: bf16\nphases:\n  - {name: a, until: 3}\n  - name: b\n' >phases.yaml
printf 'default: bf16\nrules:\n  - layer: "fcc.*"\n    precision: fp32\n' >policy_nowhere.yaml

refused <<'CASES'
no such key                 | train tiny.yaml out=x train.learning=1              | 2 | unknown key 'train.learning'
a key of PyTorch            | train tiny.yaml out=x learning_rate=1               | 2 | unknown key 'learning_rate' (did you mean train.lr?)
a key of Hugging Face       | train tiny.yaml out=x gradient_accumulation_steps=2 | 2 | did you mean train.accumulate?
another of theirs           | train tiny.yaml out=x per_device_train_batch_size=2 | 2 | did you mean train.batch?
a key of nanoGPT            | train tiny.yaml out=x block_size=64                 | 2 | did you mean data.seq?
another of nanoGPT          | train tiny.yaml out=x n_embd=64                     | 2 | did you mean net.width?
a key of Lightning          | train tiny.yaml out=x accumulate_grad_batches=2     | 2 | did you mean train.accumulate?
a key with a note           | train tiny.yaml out=x devices=2                     | 2 | did you mean dist.ranks? Started by mpirun
a key that is a value       | train tiny.yaml out=x fp16=true                     | 2 | did you mean precision=fp16?
a key that is an option     | train tiny.yaml out=x resume=x                      | 2 | mixt train --resume RUN
a section that is a key     | train tiny.yaml out=x data=x                        | 2 | did you mean data.path
a section                   | train tiny.yaml out=x train=x                       | 2 | train is a section: set one of its keys
a key as an option          | train tiny.yaml --learning_rate 0.1                 | 2 | unknown option '--learning_rate' (did you mean train.lr=VALUE, without --?)
a value as an option        | train tiny.yaml --bf16                              | 2 | did you mean precision=bf16, without --?
optimizer of Hugging Face   | train tiny.yaml out=x train.optimizer=adamw_torch   | 2 | did you mean adamw?
key in the wrong section    | train tiny.yaml out=x lr=1                          | 2 | did you mean train.lr?
word for a number           | train tiny.yaml out=x train.lr=fast                 | 2 | train.lr: expected a number at least 0, found 'fast'
fraction for an integer     | train tiny.yaml out=x train.batch=1.5               | 2 | train.batch: expected an integer
number out of range         | train tiny.yaml out=x train.lr=-1                   | 2 | train.lr: -1 is out of range
number beyond FP32          | train tiny.yaml out=x train.lr=1e300                | 2 | train.lr: 1e300 is too large
number below FP32           | train tiny.yaml out=x train.eps=1e-300              | 2 | train.eps: 1e-300 is too small
factor beyond FP32          | train tiny.yaml out=x train.lr_groups=fc.*=1e300    | 1 | lr_groups: '1e300' of 'fc.*' is too large
decay beyond FP32           | train tiny.yaml out=x train.decay_groups=fc.*=1e39  | 1 | decay_groups: '1e39' of 'fc.*' is too large
decay of what has none       | train tiny.yaml out=x train.decay_groups=*.bias=0.1   | 1 | decay_groups: '*.bias' matches no parameter with weight decay
new head of no layer        | train tiny.yaml out=x init=run init_new_head=zz     | 1 | init_new_head: 'zz' matches no parameter of this model
no amount of memory         | train tiny.yaml out=x train.memory=12X              | 2 | train.memory: expected an amount of memory as in 900M or 12G, found '12X'
memory below 0              | train tiny.yaml out=x train.memory=-1G              | 2 | train.memory: expected an amount of memory
no way to fit               | train tiny.yaml out=x train.memory_may=splt         | 2 | train.memory_may: expected a list of recompute, split, keep, found 'splt' (did you mean split?)
too little memory           | train tiny.yaml out=x train.memory=10K              | 1 | this run does not fit into 10.0 KiB
fault of no kind            | train tiny.yaml out=x faults=nan_dta@3                | 1 | faults: 'nan_dta@3': no kind 'nan_dta' (did you mean nan_data?)
fault without a step        | train tiny.yaml out=x faults=nan_data               | 1 | faults: 'nan_data': write kind@step
fault at no step            | train tiny.yaml out=x faults=lr@-3                  | 1 | faults: 'lr@-3': the update '-3' is not a number of at least 1
fault that never comes      | train tiny.yaml out=x faults=lr@900                 | 1 | faults: 'lr@900': update 900 never comes, the run makes 8
fault without a layer       | train tiny.yaml out=x faults=overflow@3             | 1 | faults: 'overflow@3': name the layer
fault of another layer      | train tiny.yaml out=x faults=overflow@3:fc.7        | 1 | faults: overflow@3: the model has no layer 'fc.7' (did you mean fc.0?)
fault of no layer           | train tiny.yaml out=x faults=memory@3:fc.0          | 1 | memory is not of a layer
fault in fused layers       | train tiny.yaml out=x faults=flip_activation@3:fc.1 | 1 | layer 'fc.1' is computed together with another one
NaN among tokens            | train gpt.yaml out=x faults=nan_data@3              | 1 | faults: nan_data@3: the inputs are int32, which cannot be NaN
split that does not divide  | train tiny.yaml out=x train.split=7                 | 1 | split 7: must divide the batch
plan for no memory          | plan tiny.yaml --memory lots                        | 2 | --memory: train.memory: expected an amount of memory
links of one process        | plan tiny.yaml --machine h100                       | 1 | --machine gives the time of communication: it needs --ranks
links of no machine         | plan tiny.yaml --ranks 2 --machine nosuch           | 1 | nosuch
plan for no ranks           | plan tiny.yaml --ranks 0                            | 2 | --ranks: 0 is out of range: must be from 1
batch for too little memory | plan tiny.yaml --largest-batch --memory 10K         | 1 | not even a batch of 1 fits
unknown choice              | train tiny.yaml out=x train.optimizer=adan          | 2 | did you mean adam?
choice by another word      | train tiny.yaml out=x device=GPU                    | 2 | did you mean cuda?
number far out of range     | train tiny.yaml out=x data.seconds=1e300            | 2 | data.seconds: 1e300 is out of range: must be from 0 to 3600
number far below its range  | train tiny.yaml out=x train.lr=-1e300               | 2 | train.lr: -1e300 is out of range: must be at least 0
number that no FP32 holds   | train tiny.yaml out=x train.lr=1e300                | 2 | train.lr: 1e300 is too large: at most 3.4e38
batch of none               | train tiny.yaml out=x train.batch=0                 | 2 | train.batch: 0 is out of range
too many threads            | train tiny.yaml out=x threads=5000                  | 2 | threads: 5000 is out of range
seed beyond 64 bits         | train tiny.yaml out=x seed=99999999999999999999     | 2 | does not fit 64 bits
loss scale of 0             | train tiny.yaml out=x train.loss_scale=0            | 2 | train.loss_scale: 0 is out of range
names of weights, no weights | train tiny.yaml out=x init_skip=fc                   | 1 | is set, but init is empty: it names the weights to start from
loss scale out of range     | train tiny.yaml out=x train.loss_scale=1e-30        | 1 | loss_scale '1e-30': must be auto, dynamic, none or a number from 2^-24
scale below its floor       | train tiny.yaml out=x train.scale_init=0.5          | 1 | must not be less than train.scale_floor
nothing to train            | train tiny.yaml out=x train.epochs=0                | 1 | train.steps are both 0: set one of them, to say when to stop
not a setting               | train tiny.yaml out=x tarin.lr                      | 2 | settings are of the form key=value
no configuration            | train                                               | 2 | missing argument CONFIG
configuration missing       | train none.yaml                                     | 1 | none.yaml: cannot be opened
configuration is a folder   | train folder                                        | 1 | folder: cannot be read: Is a directory
configuration is empty      | train empty.yaml                                    | 1 | empty.yaml:1:1: the file has no settings
configuration is binary     | train binary.yaml                                   | 1 | not a text file
configuration is no YAML    | train syntax.yaml                                   | 1 | syntax.yaml:2:
configuration has a tab     | train tab.yaml                                      | 1 | YAML is indented with spaces
key twice in a file         | train twice.yaml                                    | 1 | model is given twice
unknown key in a file       | train key.yaml                                      | 1 | key.yaml:2:3: unknown key
wrong type in a file        | train type.yaml                                     | 1 | type.yaml:2:10: train.batch: expected an integer
unknown model               | train tiny.yaml out=x model=gtp                     | 1 | did you mean gpt?
size the model has not      | train tiny.yaml out=x net.heads=2                   | 1 | model mlp
heads of a GRU              | train gpt.yaml out=x model=gru                      | 1 | model gru
GRU over digits             | train tiny.yaml out=x model=gru net.hidden=[]       | 1 | model gru needs tokens, the data has (28, 28, 1) images
heads that do not divide    | train gpt.yaml out=x net.heads=3                    | 1 | net.heads must divide net.width
images too small to pool    | train tiny.yaml out=x model=convnet net.hidden=[] net.channels=4,4,4,4,4,4 | 1 | layers reduce images of 28 x 28 to nothing
no such depth               | train tiny.yaml out=x model=resnet net.hidden=[] net.depth=19 | 1 | no depth 19
warm-up of onecycle         | train tiny.yaml out=x train.schedule=onecycle train.warmup=5 | 1 | rises by itself
fewer classes than labels   | train tiny.yaml out=x net.classes=3                 | 1 | classes 3, but the data has 10
batch above the samples     | train tiny.yaml out=x train.batch=1024              | 1 | is more than the 256 training samples
accumulation above them     | train tiny.yaml out=x train.accumulate=100          | 1 | is more than the 256 training samples
precision unknown           | train tiny.yaml out=x precision=int4                | 1 | precision 'int4' is neither fp32, tf32, fp16, bf16, fp8, auto
precision of PyTorch        | train tiny.yaml out=x precision=bfloat16            | 1 | precision 'bfloat16' is unknown (did you mean bf16?)
precision of Keras          | train tiny.yaml out=x precision=mixed_float16       | 1 | did you mean fp16?
precision of Lightning      | train tiny.yaml out=x precision=bf16-mixed          | 1 | did you mean bf16?
precision in capitals       | train tiny.yaml out=x precision=FP16                | 1 | did you mean fp16?
policy is a folder          | train tiny.yaml out=x precision=folder              | 1 | precision 'folder' is not a policy file
policy is no YAML           | train tiny.yaml out=x precision=policy_syntax.yaml  | 1 | policy_syntax.yaml:4:1: not YAML
phases without a last one   | train tiny.yaml out=x precision=phases_last.yaml    | 1 | phases_last.yaml:3:5: the last phase, 'a', has an until
phases that go back         | train tiny.yaml out=x precision=phases_order.yaml   | 1 | phases_order.yaml:4:5: phase 'b' ends at 3, not after 'a'
phases that go back by share | train tiny.yaml out=x precision=phases_share.yaml  | 1 | phases_share.yaml:4: phase 'b' (until 10%) ends at update 1 of 8, not after 'a'
a phase with another key    | train tiny.yaml out=x precision=phases_key.yaml     | 1 | phases_key.yaml:4:5: unknown key of a phase
no such phase               | plan tiny.yaml precision=phases.yaml --phase c      | 1 | --phase 'c': no phase has such a name
no phases                   | plan tiny.yaml --phase c                            | 1 | --phase 'c': the policy has no phases
policy of another format    | train tiny.yaml out=x precision=policy_format.yaml  | 1 | policy_format.yaml:1:10: a precision must be
policy with a keep of tf32  | train tiny.yaml out=x precision=policy_keep.yaml    | 1 | policy_keep.yaml:2:7: keep must be fp32, fp16, bf16 or fp8_e4m3
policy with another key     | train tiny.yaml out=x precision=policy_key.yaml     | 1 | unknown key of a policy
policy with a key twice     | train tiny.yaml out=x precision=policy_twice.yaml   | 1 | policy_twice.yaml:2:1: this key is given twice
policy without default      | train tiny.yaml out=x precision=policy_default.yaml | 1 | the policy has no default
policy rule for no layer    | train tiny.yaml out=x precision=policy_nowhere.yaml | 1 | matches nothing in this model
no GPU backend              | train tiny.yaml out=x device=cuda                   | 1 | device 'cuda': the CUDA backend is not here:
no such device              | train tiny.yaml out=x device=tpu                    | 2 | device: expected one of auto, cpu, cuda, cuda:N, found 'tpu'
no such second GPU          | train tiny.yaml out=x device=cuda:1                 | 1 | device 'cuda:1': the CUDA backend is not here:
no number of a GPU          | train tiny.yaml out=x device=cuda:one               | 2 | device: expected one of auto, cpu, cuda, cuda:N, found 'cuda:one'
pictures for words          | train tiny.yaml out=x model=speech net.hidden=[]    | 1 | needs frames of features
pictures for clips          | train tiny.yaml out=x model=c3d net.channels=[2]    | 1 | model c3d needs clips
run directory exists        | train tiny.yaml out=run                             | 1 | run directory run exists already
run directory is a file     | train tiny.yaml out=tiny.yaml                       | 1 | run directory tiny.yaml exists already
run directory in a file     | train tiny.yaml out=tiny.yaml/x                     | 1 | cannot create run directory tiny.yaml/x
run directory not allowed   | train tiny.yaml out=/proc/x                         | 1 | cannot create run directory /proc/x
run directory here          | train tiny.yaml out=.                               | 1 | run directory . exists already
model above the memory      | train tiny.yaml out=x net.hidden=1048576,1048576    | 1 | training needs 16
model that would not        | train tiny.yaml out=x net.hidden=1048576,1048576    | 1 | GiB free: use a smaller model
plan for no GPU             | plan tiny.yaml --device cuda                        | 1 | device 'cuda': the CUDA backend is not here:
plan for no device          | plan tiny.yaml --device cdua                        | 2 | did you mean cuda?
plan of nothing             | plan none.yaml                                      | 1 | none.yaml: cannot be opened
plan with no weights        | plan tiny.yaml init=none                            | 1 | none: cannot be opened
plan with weights not its   | plan tiny.yaml init=run net.hidden=17               | 1 | run/model.safetensors: tensor 'fc.0.weight' is fp32 [16, 784]
plan told of a new head      | plan tiny.yaml init=run net.hidden=17               | 1 | init_new_head=fc.0 gives that layer new random weights)
plan with no teacher         | plan tiny.yaml distill.teacher=none                  | 1 | distill.teacher: none: no such folder
train with a file as teacher | train tiny.yaml out=x distill.teacher=tiny.yaml      | 1 | distill.teacher: tiny.yaml: no such folder
teacher of all the loss      | train tiny.yaml out=x distill.weight=2               | 2 | distill.weight: 2 is out of range
plan with a new head        | plan tiny.yaml init=run init_new_head=zz            | 1 | init_new_head: 'zz' matches no parameter
comma for a point           | train tiny.yaml out=x train.lr=0,5                  | 2 | train.lr: expected a number at least 0, found '0,5'
CASES

for value in KILL KIL@write:3 KILL@wirte:3 KILL@write:0 KILL@write:x; do
    MIXT_SIGNAL=$value "$mixt" train tiny.yaml out=x >../out 2>../err
    found=$?
    check "MIXT_SIGNAL=$value" 1 "MIXT_SIGNAL: '$value' is not a signal at a place"
done

finish
