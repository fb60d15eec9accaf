import argparse, json, os, statistics, time, torch, torchvision
a = argparse.ArgumentParser(); a.add_argument('--batch', type=int); a.add_argument('--steps', type=int); a = a.parse_args()
torch.set_num_threads(int(os.environ['OMP_NUM_THREADS']))
model = torchvision.models.resnet18(num_classes=2).to(memory_format=torch.channels_last)
if int(os.environ.get('WORLD_SIZE', 1)) > 1:
    torch.distributed.init_process_group('gloo')
    model = torch.nn.parallel.DistributedDataParallel(model)
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True)
x = torch.randn(a.batch, 3, 112, 112).to(memory_format=torch.channels_last); y = torch.randint(0, 2, (a.batch,))
times = []
for i in range(a.steps):
    t = time.perf_counter()
    opt.zero_grad(); torch.nn.functional.cross_entropy(model(x), y).backward(); opt.step()
    times.append(time.perf_counter() - t)
if int(os.environ.get('RANK', 0)) == 0:
    print(json.dumps({'ms': 1e3 * statistics.median(times[4:])}))
